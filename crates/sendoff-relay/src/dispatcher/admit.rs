//! Admits rows: routes them and queues them at their sinks.

use super::order::{Arrival, Origin};
use super::*;
use sendoff::store::DeadReason;
use std::time::Duration;

/// How long a message waits for a sink that is not in the config.
const UNKNOWN_SINK_DELAY: Duration = Duration::from_secs(60);
/// The same, if another relay has the sink: that relay may soon have the lane.
const OTHER_RELAY_DELAY: Duration = Duration::from_secs(5);

impl Dispatcher {
    /// Admits rows that were read.
    pub(crate) fn take(&mut self, rows: Vec<Row>, now: Instant) {
        // Also when the quarantined lane is gone: queued rows must not be overtaken.
        let quarantined = self.is_quarantined() || self.quarantine.is_busy();
        for row in rows {
            let Some(lane) = self.lanes.get(&row.row_ref().lane) else {
                continue;
            };
            if lane.leaving {
                continue;
            }
            if self.forgets(&row) {
                continue;
            }
            if quarantined {
                self.quarantine.push(row);
            } else {
                self.admit(row, now);
            }
        }
    }

    pub(super) fn admit(&mut self, row: Row, now: Instant) {
        let Some(lane) = self.lanes.get_mut(&row.row_ref().lane) else {
            return;
        };
        lane.in_flight += 1;
        let epoch = lane.epoch;
        let guilty = lane
            .quarantined
            .as_ref()
            .is_some_and(|quarantined| quarantined.crashes >= self.crash_limit && quarantined.is_at(row.row_ref()));
        let quarantined = lane.quarantined.as_ref().filter(|_| planted!(OneCrashIsEnough));
        let guilty = guilty || quarantined.is_some_and(|quarantined| quarantined.covers(row.row_ref()));
        let guilty = guilty && !self.has_to_wait(&row);
        match row {
            Row::Message(outgoing) | Row::Expired(outgoing) if guilty => self.admit_crashed(outgoing, epoch),
            Row::Message(outgoing) => self.admit_message(outgoing, epoch, now),
            Row::Expired(outgoing) => {
                let error = "its expires_at passed before it could be delivered";
                self.admit_dead(outgoing, epoch, DeadReason::Expired, error.to_owned());
            }
            Row::Unreadable { row_ref, why } => {
                tracing::error!(
                    event = "row_unreadable",
                    lane = row_ref.lane,
                    seq = row_ref.seq,
                    why,
                    "row is not a valid message; it becomes a dead letter"
                );
                // Only its row ref is used.
                let blank = Arc::new(Outgoing::blank(row_ref));
                self.admit_dead(blank, epoch, DeadReason::Unreadable, why);
            }
        }
    }

    fn admit_message(&mut self, outgoing: Arc<Outgoing>, epoch: i64, now: Instant) {
        let deliveries = self.deliveries_of(&outgoing);
        if deliveries.is_empty() {
            let error = format!("no route matches the topic {:?}", outgoing.topic);
            return self.admit_dead(outgoing, epoch, DeadReason::Unroutable, error);
        }
        let id = self.insert(outgoing, epoch, deliveries);
        for delivery in 0..self.entries[id].deliveries.len() {
            self.queue_delivery(Ticket { entry: id, delivery }, now);
        }
    }

    fn deliveries_of(&mut self, outgoing: &Outgoing) -> SmallVec<[Delivery; 1]> {
        let elsewhere = self.routes_elsewhere(&outgoing.topic);
        let delivery = |name: Arc<str>, sink| Delivery {
            name,
            sink,
            elsewhere: !elsewhere.is_empty(),
            with_sink: false,
            tried: false,
            at_sink: false,
            verdict: None,
        };
        if let Some(name) = &outgoing.row_ref.sink {
            return smallvec::smallvec![delivery(name.clone(), self.plan.sink_named(name))];
        }
        if !elsewhere.is_empty() {
            let named = |name: &String| delivery(name.as_str().into(), self.plan.sink_named(name));
            return elsewhere.iter().map(named).collect();
        }
        let sinks = self.plan.topic(&outgoing.topic).sinks;
        let named = |sink: SinkIndex| delivery(self.plan.sinks[sink].name.clone(), Some(sink));
        sinks.into_iter().map(named).collect()
    }

    /// The sinks to which another live relay has a route for a topic without one here: that relay delivers the message.
    fn routes_elsewhere(&mut self, topic: &str) -> Vec<String> {
        if planted!(OneRelayDecides) || self.foreign.is_empty() || !self.plan.topic(topic).sinks.is_empty() {
            return Vec::new();
        }
        let sinks = self.foreign.iter().map(|routes| routes.sinks_of(topic));
        sinks
            .into_iter()
            .find(|sinks| !sinks.is_empty())
            .unwrap_or_default()
            .to_vec()
    }

    /// Lanes with messages for another relay that were read since the last call and are not being given back.
    pub(crate) fn take_stranded(&mut self) -> Vec<Lane> {
        let stranded = std::mem::take(&mut self.stranded).into_iter();
        let stays = |lane: &Lane| self.lanes.get(lane).is_some_and(|held| !held.leaving);
        stranded.filter(stays).collect()
    }

    /// Sets the routes of other live relays, where they differ from the ones here.
    pub(crate) fn heed_routes(&mut self, foreign: Vec<Routes>) {
        self.foreign = foreign;
    }

    /// Whether one of these rows has no route at any live relay, as far as is known here.
    pub(crate) fn has_unroutable(&mut self, rows: &[Row]) -> bool {
        // Messages of a topic often follow each other.
        let mut routable = None;
        rows.iter().any(|row| match row {
            Row::Message(outgoing) if outgoing.row_ref.sink.is_none() && routable != Some(&outgoing.topic) => {
                routable = Some(&outgoing.topic);
                self.plan.topic(&outgoing.topic).sinks.is_empty() && self.routes_elsewhere(&outgoing.topic).is_empty()
            }
            Row::Message(_) | Row::Expired(_) | Row::Unreadable { .. } => false,
        })
    }

    fn insert(&mut self, outgoing: Arc<Outgoing>, epoch: i64, deliveries: SmallVec<[Delivery; 1]>) -> EntryId {
        let bytes = outgoing.bytes() + ROW_BYTES;
        self.bytes += bytes;
        let key = outgoing.key.as_deref().map(Arc::from);
        let undecided = deliveries.len();
        self.entries.insert(Entry {
            outgoing,
            key,
            epoch,
            bytes,
            deliveries,
            undecided,
            claim: self.claim,
        })
    }

    /// A message that crashed relays. It becomes a dead letter at each of its sinks, so that it blocks its key there like any
    /// other dead letter: when an operator retries it, it must not arrive after its followers.
    fn admit_crashed(&mut self, outgoing: Arc<Outgoing>, epoch: i64) {
        let error = "relays crashed while they worked on it alone";
        let deliveries = self.deliveries_of(&outgoing);
        if deliveries.is_empty() {
            return self.admit_dead(outgoing, epoch, DeadReason::Crashed, error.to_owned());
        }
        let policy = self.plan.topic(&outgoing.topic).policy;
        let verdict = Verdict::Dead {
            reason: DeadReason::Crashed,
            error: error.to_owned(),
            charged: false,
            blocks: outgoing.key.is_some() && policy.on_failure == crate::OnFailure::Block,
        };
        let count = deliveries.len();
        let id = self.insert(outgoing, epoch, deliveries);
        for delivery in 0..count {
            self.decide(Ticket { entry: id, delivery }, verdict.clone());
        }
    }

    /// A message that reaches no sink.
    fn admit_dead(&mut self, outgoing: Arc<Outgoing>, epoch: i64, reason: DeadReason, error: String) {
        let name = outgoing.row_ref.sink.clone().unwrap_or_else(|| Arc::from(""));
        let deliveries = smallvec::smallvec![Delivery {
            name,
            sink: None,
            elsewhere: false,
            with_sink: false,
            tried: false,
            at_sink: false,
            verdict: None
        }];
        let id = self.insert(outgoing, epoch, deliveries);
        let verdict = Verdict::Dead {
            reason,
            error,
            charged: false,
            blocks: false,
        };
        self.decide(Ticket { entry: id, delivery: 0 }, verdict);
    }

    /// Queues a delivery at its sink or behind the messages of its key, or moves it to the waiting table.
    fn queue_delivery(&mut self, ticket: Ticket, now: Instant) {
        let entry = &self.entries[ticket.entry];
        let sink = entry.deliveries[ticket.delivery].sink;
        let arrival = match entry.key_ref(ticket.delivery) {
            None => Arrival::First,
            Some(at) => {
                let (member, row_ref) = (entry.member(ticket), &entry.outgoing.row_ref);
                // A row of the waiting table that names this delivery is the one that its key waits for.
                let origin = if row_ref.table == Table::Waiting && row_ref.sink.is_some() {
                    let policy = self.plan.topic(&entry.outgoing.topic).policy;
                    let parked = policy.on_failure == crate::OnFailure::Park;
                    Origin::Waiting { parked }
                } else {
                    Origin::New
                };
                self.order.arrives(at, member, origin, sink.is_some())
            }
        };
        if arrival == Arrival::Blocked {
            return self.hold(ticket);
        }
        if let Some(sink) = sink {
            self.count_at_sink(ticket, sink);
        }
        if arrival == Arrival::First {
            self.line_up(ticket, now);
        }
    }

    /// Queues a delivery at its sink, or defers it until the sink takes messages.
    ///
    /// Only a message with none of its key in front of it: who finds the others in the ready table after a crash would
    /// deliver them behind one that is due in the waiting table.
    pub(super) fn line_up(&mut self, ticket: Ticket, now: Instant) {
        let delivery = &self.entries[ticket.entry].deliveries[ticket.delivery];
        let Some(sink) = delivery.sink.filter(|_| !delivery.elsewhere) else {
            return self.leave_to_others(ticket);
        };
        if let Some((delay, why)) = self.sinks[sink].shut(now) {
            return self.wait_for_sink(ticket, delay, why.to_owned());
        }
        if self.crowds(sink) {
            return self.wait_for_sink(
                ticket,
                CROWDED_DELAY,
                "the sink is slower than its messages arrive".to_owned(),
            );
        }
        self.join_queue(sink, ticket);
    }
}

impl Dispatcher {
    /// Defers a delivery that has no sink or no route here.
    pub(super) fn leave_to_others(&mut self, ticket: Ticket) {
        let (delay, error) = self.why_no_sink(ticket);
        if delay == OTHER_RELAY_DELAY {
            self.stranded.insert(self.entries[ticket.entry].outgoing.row_ref.lane);
        }
        self.wait_for_sink(ticket, delay, error);
    }

    /// How long a delivery without a sink here waits, and why.
    fn why_no_sink(&self, ticket: Ticket) -> (Duration, String) {
        let entry = &self.entries[ticket.entry];
        let (topic, name) = (&entry.outgoing.topic, &entry.deliveries[ticket.delivery].name);
        if self.plan.sink_named(name).is_some() {
            let error = format!("this relay has no route for the topic {topic:?}; another relay has one");
            return (OTHER_RELAY_DELAY, error);
        }
        let elsewhere = self.foreign.iter().any(|routes| routes.lead_to(name));
        let delay = if elsewhere {
            OTHER_RELAY_DELAY
        } else {
            UNKNOWN_SINK_DELAY
        };
        (delay, format!("the sink {:?} is not configured", &**name))
    }

    fn count_at_sink(&mut self, ticket: Ticket, sink: SinkIndex) {
        if let Some(entry) = self.entries.get_mut(ticket.entry) {
            entry.deliveries[ticket.delivery].at_sink = true;
            self.sinks[sink].load += 1;
        }
    }
}
