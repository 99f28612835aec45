//! What the desk tells its observer.

use sendoff::Outcome;

use super::*;
use crate::observe::{PublishedBatch, PublishedMessage, SinkPulse};

impl Desk {
    /// What is admitted from now on was read then.
    pub(crate) fn claim(&mut self, claim: Claimed) {
        self.claim = claim;
    }

    /// Tells of outcomes, before they are acted on.
    pub(crate) fn tell_published(
        &self,
        sink: SinkIndex,
        tickets: &[Ticket],
        outcomes: &[Outcome],
        begun: Instant,
        answered: Instant,
    ) {
        let Some(observer) = &self.hooks.observer else { return };
        let message = |(ticket, outcome)| {
            let ticket: &Ticket = ticket;
            let item = self.items.get(ticket.item)?;
            Some(PublishedMessage {
                delivery: &item.delivery,
                claim: item.claim,
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
        self.hooks.guarded("published", || observer.published(&batch));
    }

    pub(crate) fn hooks(&self) -> &HookList {
        &self.hooks
    }

    /// The lanes that are held, with what is in hand of each.
    pub(crate) fn lane_loads(&self) -> Vec<(Lane, usize)> {
        self.lanes.iter().map(|(lane, held)| (*lane, held.in_hand)).collect()
    }

    pub(crate) fn sink_pulses(&self) -> Vec<SinkPulse> {
        let pulse = |(planned, desk): (&PlannedSink, &SinkDesk)| SinkPulse {
            name: planned.name.clone(),
            state: desk.breaker.state(),
            paused: desk.paused,
            in_hand: desk.load,
        };
        self.plan.sinks.iter().zip(&self.sinks).map(pulse).collect()
    }
}
