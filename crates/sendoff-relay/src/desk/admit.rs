//! Rows come in: they are routed, and queue at their sinks.

use super::*;
use sendoff::store::{DeadReason, RetryState, Room};
use std::time::Duration;

/// How long a message waits for a sink that is not in the config.
const UNKNOWN_SINK_DELAY: Duration = Duration::from_secs(60);
/// The same where another relay has the sink: the lane may soon be that relay's.
const OTHER_RELAY_DELAY: Duration = Duration::from_secs(5);

impl Desk {
    /// Takes in what was read.
    pub(crate) fn take(&mut self, rows: Vec<Row>, now: Instant) {
        // Also when the lane for which they queue is gone: what queues already must not be overtaken.
        let quarantined = self.is_quarantined() || self.quarantine.is_busy();
        for row in rows {
            let Some(lane) = self.lanes.get(&row.place().lane) else {
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
        let Some(lane) = self.lanes.get_mut(&row.place().lane) else {
            return;
        };
        lane.in_hand += 1;
        let epoch = lane.epoch;
        let guilty = lane
            .suspect
            .as_ref()
            .is_some_and(|suspect| suspect.crashes >= self.crash_limit && suspect.is_at(row.place()));
        let suspect = lane.suspect.as_ref().filter(|_| planted!(OneCrashIsEnough));
        let guilty = guilty || suspect.is_some_and(|suspect| suspect.covers(row.place()));
        let guilty = guilty && !self.has_to_wait(&row);
        match row {
            Row::Message(delivery) | Row::Expired(delivery) if guilty => self.admit_crashed(delivery, epoch),
            Row::Message(delivery) => self.admit_message(delivery, epoch, now),
            Row::Expired(delivery) => {
                let error = "its expires_at passed before it could be delivered";
                self.admit_dead(delivery, epoch, DeadReason::Expired, error.to_owned());
            }
            Row::Unreadable { place, why } => {
                tracing::error!(
                    event = "row_unreadable",
                    lane = place.lane,
                    seq = place.seq,
                    why,
                    "a row is no message"
                );
                let blank = Arc::new(blank_delivery(place));
                self.admit_dead(blank, epoch, DeadReason::Unreadable, why);
            }
        }
    }

    fn admit_message(&mut self, delivery: Arc<Delivery>, epoch: i64, now: Instant) {
        let legs = self.legs_of(&delivery);
        if legs.is_empty() {
            let error = format!("no route matches the topic {:?}", delivery.topic);
            return self.admit_dead(delivery, epoch, DeadReason::Unroutable, error);
        }
        let id = self.insert(delivery, epoch, legs);
        for leg in 0..self.items[id].legs.len() {
            self.queue_leg(Ticket { item: id, leg }, now);
        }
    }

    fn legs_of(&mut self, delivery: &Delivery) -> SmallVec<[Leg; 1]> {
        let leg = |name: Arc<str>, sink| Leg {
            name,
            sink,
            with_sink: false,
            tried: false,
            at_sink: false,
            verdict: None,
        };
        let elsewhere = self.routes_elsewhere(&delivery.topic);
        if let Some(name) = &delivery.place.leg {
            let sink = self.plan.sink_named(name).filter(|_| elsewhere.is_empty());
            return smallvec::smallvec![leg(name.clone(), sink)];
        }
        if !elsewhere.is_empty() {
            return elsewhere.iter().map(|name| leg(name.as_str().into(), None)).collect();
        }
        let sinks = self.plan.topic(&delivery.topic).sinks;
        let named = |sink: SinkIndex| leg(self.plan.sinks[sink].name.clone(), Some(sink));
        sinks.into_iter().map(named).collect()
    }

    /// The sinks that another live relay has a route to for a topic that has none here: the message is left to that relay.
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

    /// Other live relays have these routes, where they are not the same as here.
    pub(crate) fn heed_routes(&mut self, foreign: Vec<Routes>) {
        self.foreign = foreign;
    }

    /// Whether one of these rows has no route at any live relay, as far as is known here.
    pub(crate) fn has_unroutable(&mut self, rows: &[Row]) -> bool {
        // Messages of a topic often come together.
        let mut routable = None;
        rows.iter().any(|row| match row {
            Row::Message(delivery) if delivery.place.leg.is_none() && routable != Some(&delivery.topic) => {
                routable = Some(&delivery.topic);
                self.plan.topic(&delivery.topic).sinks.is_empty() && self.routes_elsewhere(&delivery.topic).is_empty()
            }
            Row::Message(_) | Row::Expired(_) | Row::Unreadable { .. } => false,
        })
    }

    fn insert(&mut self, delivery: Arc<Delivery>, epoch: i64, legs: SmallVec<[Leg; 1]>) -> ItemId {
        let bytes = delivery.bytes() + ROW_BYTES;
        self.bytes += bytes;
        let key = delivery.key.as_deref().map(Arc::from);
        let undecided = legs.len();
        self.items.insert(Item {
            delivery,
            key,
            epoch,
            bytes,
            legs,
            undecided,
            claim: self.claim,
        })
    }

    /// A message that relays crashed on. It dies at each of its sinks, so that it holds up its key there as every other
    /// dead letter does: one that an operator retries must not arrive behind its followers.
    fn admit_crashed(&mut self, delivery: Arc<Delivery>, epoch: i64) {
        let error = "relays crashed while they worked on it alone";
        let legs = self.legs_of(&delivery);
        if legs.is_empty() {
            return self.admit_dead(delivery, epoch, DeadReason::Crashed, error.to_owned());
        }
        let policy = self.plan.topic(&delivery.topic).policy;
        let verdict = Verdict::Dead {
            reason: DeadReason::Crashed,
            error: error.to_owned(),
            charged: false,
            blocks: delivery.key.is_some() && policy.head == crate::HeadPolicy::Block,
        };
        let count = legs.len();
        let id = self.insert(delivery, epoch, legs);
        for leg in 0..count {
            self.decide(Ticket { item: id, leg }, verdict.clone());
        }
    }

    /// A message that no sink gets to see.
    fn admit_dead(&mut self, delivery: Arc<Delivery>, epoch: i64, reason: DeadReason, error: String) {
        let name = delivery.place.leg.clone().unwrap_or_else(|| Arc::from(""));
        let legs = smallvec::smallvec![Leg {
            name,
            sink: None,
            with_sink: false,
            tried: false,
            at_sink: false,
            verdict: None
        }];
        let id = self.insert(delivery, epoch, legs);
        let verdict = Verdict::Dead {
            reason,
            error,
            charged: false,
            blocks: false,
        };
        self.decide(Ticket { item: id, leg: 0 }, verdict);
    }

    /// Lets a leg queue at its sink, or behind the messages of its key, or sends it to wait.
    fn queue_leg(&mut self, ticket: Ticket, now: Instant) {
        let item = &self.items[ticket.item];
        let leg = &item.legs[ticket.leg];
        let Some(sink) = leg.sink else {
            let (delay, error) = self.why_no_sink(ticket);
            let state = RetryState::Down;
            return self.decide(
                ticket,
                Verdict::Retry {
                    state,
                    delay,
                    charged: false,
                    error,
                },
            );
        };
        // A row of the waiting table that names this leg is the very one that its key waits for.
        let is_head = item.delivery.place.room == Room::Waiting && item.delivery.place.leg.is_some();
        if let Some(key) = item.key.clone() {
            let name = leg.name.clone();
            let place = &item.delivery.place;
            let failed = self.failed.get(&(place.lane, key.clone(), name.clone()));
            // It was due when it was read. Since then one before it has failed.
            if is_head && failed.is_some_and(|head| head.seq < place.seq) {
                return self.hold(ticket);
            }
            let follows_ready = self.follows_ready(sink, &key, place.seq);
            let parks = self.plan.topic(&item.delivery.topic).policy.head == crate::HeadPolicy::Park;
            if let Some(lane) = self.lanes.get_mut(&item.delivery.place.lane) {
                let blocked = lane.blocked.contains(&key, &name);
                if blocked && !is_head && !follows_ready && !planted!(OvertakesHead) {
                    return self.hold(ticket);
                }
                if is_head && !parks {
                    lane.blocked.written(key.clone(), name, self.round);
                }
            }
            let chain = self.sinks[sink].chains.entry(key).or_default();
            chain.push_back(ticket);
            let behind_others = chain.len() > 1;
            self.count_at_sink(ticket, sink);
            if behind_others {
                return;
            }
        } else {
            self.count_at_sink(ticket, sink);
        }
        self.line_up(ticket, now);
    }

    /// Whether one of its key that is in the ready table stands before it at this sink: it goes behind that one. In the waiting
    /// table it would be found in front of it after a crash.
    fn follows_ready(&self, sink: SinkIndex, key: &Arc<str>, seq: i64) -> bool {
        let chain = self.sinks[sink].chains.get(key);
        let mut places = chain
            .into_iter()
            .flatten()
            .map(|ticket| &self.items[ticket.item].delivery.place);
        places.any(|place| place.room == Room::Ready && place.seq < seq)
    }

    /// Lets a leg queue at its sink, or sends it to wait for the sink.
    ///
    /// Only a message with none of its key in front of it: who finds the others in the ready table after a crash would
    /// deliver them behind one that is due in the waiting table.
    pub(super) fn line_up(&mut self, ticket: Ticket, now: Instant) {
        let Some(sink) = self.items[ticket.item].legs[ticket.leg].sink else {
            return;
        };
        if let Some((delay, why)) = self.sinks[sink].shut(now) {
            return self.wait_for_sink(ticket, delay, why.to_owned());
        }
        if self.crowds(sink) {
            return self.wait_for_sink(
                ticket,
                CROWDED_DELAY,
                "the sink is slower than its messages come".to_owned(),
            );
        }
        self.join_queue(sink, ticket);
    }
}

impl Desk {
    /// For how long, and why, a leg waits that has no sink here.
    fn why_no_sink(&self, ticket: Ticket) -> (Duration, String) {
        let item = &self.items[ticket.item];
        let (topic, name) = (&item.delivery.topic, &item.legs[ticket.leg].name);
        if self.plan.sink_named(name).is_some() {
            let error = format!("this relay has no route for the topic {topic:?}; another relay has");
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
        if let Some(item) = self.items.get_mut(ticket.item) {
            item.legs[ticket.leg].at_sink = true;
            self.sinks[sink].load += 1;
        }
    }
}

/// Stands for a row that could not be read; only its place is ever used.
fn blank_delivery(place: Place) -> Delivery {
    Delivery {
        id: sendoff::Uuid::nil(),
        topic: String::new(),
        payload: Default::default(),
        content_type: None,
        headers: Default::default(),
        key: None,
        aggregate_type: None,
        aggregate_id: None,
        schema_version: None,
        idempotency_key: None,
        priority: 0,
        created_at: std::time::UNIX_EPOCH,
        expires_at: None,
        attempts: 0,
        max_attempts: None,
        place,
    }
}
