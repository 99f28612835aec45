//! Reports to observers.

use sendoff::Outcome;

use super::*;
use crate::observe::{PublishedBatch, PublishedMessage, SinkHealth};

impl Dispatcher {
    /// Sets when the rows were read that are admitted from now on.
    pub(crate) fn claim(&mut self, claim: Claimed) {
        self.claim = claim;
    }

    /// Reports outcomes before they are applied.
    pub(crate) fn tell_published(
        &self,
        sink: SinkIndex,
        tickets: &[Ticket],
        outcomes: &[Outcome],
        begun: Instant,
        answered: Instant,
    ) {
        if !self.hooks.is_observed() {
            return;
        }
        let message = |(ticket, outcome)| {
            let ticket: &Ticket = ticket;
            let entry = self.entries.get(ticket.entry)?;
            Some(PublishedMessage {
                outgoing: &entry.outgoing,
                claim: entry.claim,
                outcome,
            })
        };
        let messages: Vec<_> = tickets.iter().zip(outcomes).filter_map(message).collect();
        let batch = PublishedBatch {
            sink: &self.plan.sinks[sink].name,
            begun,
            answered,
            messages: &messages,
        };
        self.hooks.observe("published", |observer| observer.published(&batch));
    }

    pub(crate) fn hooks(&self) -> &HookList {
        &self.hooks
    }

    /// The held lanes, each with its number of messages in flight.
    pub(crate) fn lane_loads(&self) -> Vec<(Lane, usize)> {
        self.lanes.iter().map(|(lane, held)| (*lane, held.in_flight)).collect()
    }

    pub(crate) fn sink_health(&self) -> Vec<SinkHealth> {
        let relay_health = |(planned, sink_queue): (&PlannedSink, &SinkQueue)| SinkHealth {
            name: planned.name.clone(),
            state: sink_queue.breaker.state(),
            paused: sink_queue.paused,
            in_flight: sink_queue.load,
        };
        self.plan.sinks.iter().zip(&self.sinks).map(relay_health).collect()
    }
}
