//! What an operator pauses waits in its table, and goes on when the pause ends.
//!
//! Whoever ends the pause of a topic makes its messages due. A relay may read them, or new ones, before it hears of the end,
//! and would send them to wait until nobody wakes them. So messages of a paused topic are *in doubt* first: they stand where
//! they would queue, and go to wait only by news that are younger than they are.

use super::*;

/// How long messages for a paused sink wait before they are looked at again. While it is paused they are passed over, so this
/// only keeps a relay from looking for each of them as soon as it is written.
const SINK_DELAY: Duration = Duration::from_secs(1);
/// How long messages of a paused topic wait, unless the pause is ended: then they are due at once.
const TOPIC_DELAY: Duration = Duration::from_secs(3600);

impl SinkDesk {
    /// For how long, and why, an operator lets nothing go to this sink.
    pub(super) fn paused_for(&self) -> Option<(Duration, &'static str)> {
        self.paused.then_some((SINK_DELAY, "the sink is paused"))
    }
}

impl Desk {
    /// These sinks and topics were paused by an operator when they were `asked` for, and no others. Tells whether something
    /// goes on that was paused.
    ///
    /// What queues for them goes to wait in its table: in hand it would be in others' way for as long as the pause lasts, and
    /// keep the legs of its messages from being settled that were delivered.
    pub(crate) fn pause(&mut self, paused: &[(String, String)], asked: Instant, now: Instant) -> bool {
        let of_kind = |wanted: &'static str| {
            let of_kind = paused.iter().filter(move |(kind, _)| kind == wanted);
            of_kind.map(|(_, name)| name.as_str())
        };
        let mut goes_on = false;
        for (planned, desk) in self.plan.sinks.iter().zip(&mut self.sinks) {
            let was_paused = std::mem::replace(&mut desk.paused, of_kind("sink").any(|name| *name == *planned.name));
            goes_on |= was_paused && !desk.paused;
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

    /// Lets a leg queue at its sink, unless its topic is paused.
    pub(super) fn join_queue(&mut self, sink: SinkIndex, ticket: Ticket) {
        if !self.paused_topics.is_empty() && self.is_paused(ticket) {
            self.doubts.push(ticket);
        } else {
            self.sinks[sink].queue.push_back(ticket);
        }
    }

    fn is_paused(&self, ticket: Ticket) -> bool {
        let topic = self.items.get(ticket.item).map(|item| item.delivery.topic.as_str());
        !planted!(PauseIgnored)
            && topic.is_some_and(|topic| self.paused_topics.iter().any(|pattern| pattern.matches(topic)))
    }

    /// Whether it has to be known soon what is paused.
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.doubts.is_empty()
    }

    fn settle_doubts(&mut self, asked: Instant, now: Instant) {
        for ticket in std::mem::take(&mut self.doubts) {
            // Its lane may be another relay's by now.
            let Some(item) = self.items.get(ticket.item) else {
                continue;
            };
            let read = item.claim.at;
            if !self.is_paused(ticket) {
                self.line_up(ticket, now);
            } else if asked >= read {
                self.wait_for_sink(ticket, TOPIC_DELAY, "the topic is paused".to_owned());
            } else {
                self.doubts.push(ticket);
            }
        }
    }
}
