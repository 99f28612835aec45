//! Paused deliveries wait in the table, and continue when the pause ends.
//!
//! Resuming a topic makes its messages due. A relay may read them, or new ones, before it knows of the end of the pause, and
//! would defer them with nothing left to wake them. So messages of a paused topic are *in doubt* first: they stay where they
//! would queue, and are deferred only when newer news confirms the pause. Their settlement names the pause: the store knows
//! whether it has ended meanwhile, and then makes them due immediately.

use super::*;

/// How long messages for a paused sink wait before they are looked at again. While it is paused they are passed over, so this
/// only keeps a relay from looking for each of them as soon as it is written.
const SINK_DELAY: Duration = Duration::from_secs(1);

impl SinkQueue {
    /// How long this sink is paused by an operator, and why.
    pub(super) fn paused_for(&self) -> Option<(Duration, &'static str)> {
        self.paused.then_some((SINK_DELAY, "the sink is paused"))
    }
}

impl Dispatcher {
    /// These sinks and topics were paused by an operator when they were `asked` for, and no others. Returns whether
    /// something was resumed.
    ///
    /// What queues for them goes to wait in its table: in flight it would be in others' way for as long as the pause lasts, and
    /// keep the deliveries of its messages from being settled that were delivered.
    pub(crate) fn pause(&mut self, paused: &[(String, String)], asked: Instant, now: Instant) -> bool {
        let of_kind = |wanted: &'static str| {
            let of_kind = paused.iter().filter(move |(kind, _)| kind == wanted);
            of_kind.map(|(_, name)| name.as_str())
        };
        let mut goes_on = false;
        for (planned, sink_queue) in self.plan.sinks.iter().zip(&mut self.sinks) {
            let was_paused = std::mem::replace(
                &mut sink_queue.paused,
                of_kind("sink").any(|name| *name == *planned.name),
            );
            goes_on |= was_paused && !sink_queue.paused;
        }
        let topics: Vec<Pattern> = of_kind("topic").filter_map(|name| name.parse().ok()).collect();
        goes_on |= self.paused_topics.iter().any(|topic| !topics.contains(topic));
        self.paused_topics = topics;
        self.clear_queues();
        self.settle_doubts(asked, now);
        goes_on
    }

    fn clear_queues(&mut self) {
        for sink in 0..self.sinks.len() {
            if let Some((delay, why)) = self.sinks[sink].paused_for() {
                self.empty_queue(sink, delay, why);
            } else if !self.paused_topics.is_empty() {
                for ticket in std::mem::take(&mut self.sinks[sink].queue) {
                    self.join_queue(sink, ticket);
                }
            }
        }
    }

    /// Queues a delivery at its sink, unless it is left to another relay or its topic is paused.
    pub(super) fn join_queue(&mut self, sink: SinkIndex, ticket: Ticket) {
        let entry = self.entries.get(ticket.entry);
        if entry.is_some_and(|entry| entry.deliveries[ticket.delivery].elsewhere) {
            self.leave_to_others(ticket);
        } else if !self.paused_topics.is_empty() && self.paused_by(ticket).is_some() {
            self.doubts.push(ticket);
        } else {
            self.sinks[sink].queue.push_back(ticket);
        }
    }

    /// The pause that a delivery has to wait for.
    fn paused_by(&self, ticket: Ticket) -> Option<&Pattern> {
        let entry = self.entries.get(ticket.entry).filter(|_| !planted!(PauseIgnored))?;
        let topic = &entry.outgoing.topic;
        self.paused_topics.iter().find(|pattern| pattern.matches(topic))
    }

    /// Whether the pauses have to be read soon.
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.doubts.is_empty()
    }

    fn settle_doubts(&mut self, asked: Instant, now: Instant) {
        for ticket in std::mem::take(&mut self.doubts) {
            // Its lane may belong to another relay now.
            let Some(entry) = self.entries.get(ticket.entry) else {
                continue;
            };
            let read = entry.claim.at;
            match self.paused_by(ticket) {
                None => self.line_up(ticket, now),
                Some(pause) if asked >= read => {
                    let by = pause.as_str().to_owned();
                    self.decide(ticket, Verdict::Paused { by });
                }
                Some(_) => self.doubts.push(ticket),
            }
        }
    }
}
