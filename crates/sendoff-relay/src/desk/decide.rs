//! Outcomes become verdicts, and verdicts move the followers of a key.

use std::time::Duration;

use super::unanswered::pause_after;
use super::*;
use crate::HeadPolicy;
use sendoff::context::LOG_CONTEXT;
use sendoff::store::{DeadReason, LegSettlement, RetryState};
use sendoff::{Outcome, Reason};

/// How long a message waits whose outcome is unknown, while the sink answers for others.
const AGAIN_DELAY: Duration = Duration::from_millis(500);

impl Desk {
    /// A sink has answered. What that tells of the sink counts even if the message is somebody else's by now.
    pub(crate) fn outcome(&mut self, sink: SinkIndex, ticket: Ticket, outcome: Outcome, now: Instant) {
        if let Some(item) = self.items.get_mut(ticket.item) {
            item.legs[ticket.leg].with_sink = false;
        }
        match outcome {
            Outcome::SinkDown(_) | Outcome::Unknown(_) => {}
            // Not asked: a probe has to be made by another message.
            Outcome::NotYet(_) => self.sinks[sink].breaker.dropped(),
            Outcome::Delivered | Outcome::Temporary(_) | Outcome::Permanent(_) => {
                if let Some(outage) = self.sinks[sink].breaker.up(now) {
                    tracing::info!(
                        event = "sink_up",
                        sink = &*self.plan.sinks[sink].name,
                        down_ms = outage.as_millis() as u64,
                        "the sink answers again"
                    );
                }
                if let Some(item) = self.items.get(ticket.item) {
                    self.sinks[sink].unanswered.clear(item.delivery.id);
                }
            }
        }
        match outcome {
            Outcome::SinkDown(reason) => self.sink_down(sink, ticket, &reason, now),
            Outcome::Unknown(_) if planted!(SettlesUnconfirmed) => self.decide(ticket, Verdict::Delivered),
            Outcome::Unknown(reason) => self.unknown(sink, ticket, &reason, now),
            _ if !self.items.contains_key(ticket.item) => {}
            Outcome::Delivered => {
                let item = &self.items[ticket.item];
                let leg = &item.legs[ticket.leg].name;
                self.hooks.each("sent", |hook| hook.sent(&item.delivery, leg));
                self.decide(ticket, Verdict::Delivered);
            }
            Outcome::Temporary(reason) => self.failed(ticket, &reason),
            Outcome::Permanent(reason) => self.dead(ticket, DeadReason::Permanent, reason.text().to_owned()),
            Outcome::NotYet(reason) => self.too_early(ticket, &reason),
        }
    }

    fn too_early(&mut self, ticket: Ticket, reason: &Reason) {
        let parks = self.items[ticket.item].key.is_some();
        let state = if parks { RetryState::Parked } else { RetryState::Retry };
        let verdict = Verdict::Retry {
            state,
            delay: reason.asked_delay().unwrap_or(TOO_EARLY_DELAY),
            charged: false,
            error: reason.text().to_owned(),
        };
        self.decide(ticket, verdict);
    }

    /// How often the sink gave no answer for this message although it answered for others in between.
    fn strike(&mut self, sink: SinkIndex, ticket: Ticket, now: Instant) -> u32 {
        let item = self.items.get(ticket.item);
        item.map_or(0, |item| self.sinks[sink].unanswered.strike(item.delivery.id, now))
    }

    /// The sink says that it is down. A message that hears that again and again, while others get through, does not take the
    /// sink down: it waits longer each time.
    fn sink_down(&mut self, sink: SinkIndex, ticket: Ticket, reason: &Reason, now: Instant) {
        let strikes = self.strike(sink, ticket, now);
        if strikes > 0 {
            self.sinks[sink].breaker.dropped();
            return self.wait_for_sink(ticket, pause_after(strikes), reason.text().to_owned());
        }
        self.shut(sink, ticket, reason, now);
    }

    /// Nobody knows whether the message arrived. It costs no attempt and goes again as soon as the sink answers, unless the
    /// sink answered for others since this happened to it before: then it is the message.
    fn unknown(&mut self, sink: SinkIndex, ticket: Ticket, reason: &Reason, now: Instant) {
        if self.strike(sink, ticket, now) > 0 {
            self.sinks[sink].breaker.dropped();
            return self.failed(ticket, reason);
        }
        if self.sinks[sink].unanswered.answered_others() {
            return self.wait_for_sink(ticket, AGAIN_DELAY, reason.text().to_owned());
        }
        self.shut(sink, ticket, reason, now);
    }

    /// A sink gives no answers. What queues there waits in its table, not in hand, where it would be in others' way.
    fn shut(&mut self, sink: SinkIndex, ticket: Ticket, reason: &Reason, now: Instant) {
        if self.sinks[sink].breaker.down(now, reason.asked_delay(), &mut self.rng) {
            tracing::warn!(
                event = "sink_down",
                sink = &*self.plan.sinks[sink].name,
                error = reason.text(),
                "the sink is down"
            );
        }
        let until = self.sinks[sink].breaker.shut_until(now);
        let delay = until.map_or(Duration::ZERO, |until| until - now);
        self.wait_for_sink(ticket, delay, reason.text().to_owned());
        self.empty_queue(sink, delay, "the sink is down");
    }

    /// Sends all that queues at a sink to wait for it.
    pub(super) fn empty_queue(&mut self, sink: SinkIndex, delay: Duration, why: &str) {
        for queued in std::mem::take(&mut self.sinks[sink].queue) {
            self.wait_for_sink(queued, delay, why.to_owned());
        }
    }

    fn failed(&mut self, ticket: Ticket, reason: &Reason) {
        let item = &self.items[ticket.item];
        let policy = self.plan.topic(&item.delivery.topic).policy;
        let attempts = item.delivery.attempts + 1;
        let limit = item.delivery.max_attempts.unwrap_or(policy.retry.attempts);
        if attempts >= limit {
            return self.dead(ticket, DeadReason::Exhausted, reason.text().to_owned());
        }
        let backoff = policy.retry.delay(item.delivery.attempts, &mut self.rng);
        let delay = reason.asked_delay().map_or(backoff, |asked| asked.max(backoff));
        let parks = item.key.is_some() && policy.head == HeadPolicy::Park;
        let state = if parks { RetryState::Parked } else { RetryState::Retry };
        let (leg, error) = (&item.legs[ticket.leg].name, reason.text().to_owned());
        tracing::warn!(
            event = "message_failed", id = %item.delivery.id, topic = item.delivery.topic, sink = &**leg, attempts,
            retry_in_ms = delay.as_millis() as u64, context = item.delivery.headers.get(LOG_CONTEXT), error,
            "an attempt failed"
        );
        self.hooks.each("failed", |hook| {
            hook.failed(&item.delivery, leg, attempts, &error, delay)
        });
        if let Some(observer) = &self.hooks.observer {
            self.hooks.guarded("retried", || observer.retried(&item.delivery, leg));
        }
        self.decide(
            ticket,
            Verdict::Retry {
                state,
                delay,
                charged: !planted!(NeverCharges),
                error,
            },
        );
    }

    fn dead(&mut self, ticket: Ticket, reason: DeadReason, error: String) {
        let item = &self.items[ticket.item];
        let policy = self.plan.topic(&item.delivery.topic).policy;
        let blocks = item.key.is_some() && policy.head == HeadPolicy::Block;
        self.decide(
            ticket,
            Verdict::Dead {
                reason,
                error,
                charged: true,
                blocks,
            },
        );
    }

    pub(super) fn wait_for_sink(&mut self, ticket: Ticket, delay: Duration, error: String) {
        self.decide(
            ticket,
            Verdict::Retry {
                state: RetryState::Down,
                delay,
                charged: planted!(OutageCharged),
                error,
            },
        );
    }

    /// Writes down what becomes of a leg, and of the messages behind it.
    pub(super) fn decide(&mut self, ticket: Ticket, verdict: Verdict) {
        let Some(item) = self.items.get_mut(ticket.item) else {
            return;
        };
        let leg = &mut item.legs[ticket.leg];
        if leg.verdict.is_some() {
            return;
        }
        if let Verdict::Dead { reason, error, .. } = &verdict {
            tracing::error!(
                event = "message_dead", id = %item.delivery.id, topic = item.delivery.topic, sink = &*leg.name,
                reason = reason.as_str(), context = item.delivery.headers.get(LOG_CONTEXT), error,
                "a message goes to the dead letters"
            );
            let (delivery, name) = (&item.delivery, &leg.name);
            self.hooks.each("dead_lettered", |hook| {
                hook.dead_lettered(delivery, name, *reason, error)
            });
            if let Some(observer) = &self.hooks.observer {
                self.hooks
                    .guarded("dead_lettered", || observer.dead_lettered(delivery, name, *reason));
            }
        }
        let effect = effect_on_followers(&verdict);
        let held = verdict == Verdict::Hold;
        leg.verdict = Some(verdict);
        let (lane, key, sink, name) = (item.delivery.place.lane, item.key.clone(), leg.sink, leg.name.clone());
        let seq = item.delivery.place.seq;
        if let (true, Some(sink)) = (std::mem::take(&mut item.legs[ticket.leg].at_sink), sink) {
            self.sinks[sink].load -= 1;
        }
        item.undecided -= 1;
        let complete = item.undecided == 0;
        if complete {
            self.settle_item(ticket.item);
        }
        let Some(key) = key else { return };
        if !complete && matches!(effect, Followers::Wait) {
            self.shut_gate((lane, key.clone(), name.clone()), ticket.item);
        }
        match effect {
            Followers::Wait if held => {}
            Followers::Wait => {
                let head = FailedHead { seq, written: false };
                self.failed.insert((lane, key.clone(), name.clone()), head);
            }
            Followers::Go | Followers::GoOnceSettled if self.failed.is_empty() => {}
            Followers::Go | Followers::GoOnceSettled => {
                self.failed.remove(&(lane, key.clone(), name.clone()));
            }
        }
        match effect {
            Followers::Go => {
                if let Some(sink) = sink {
                    self.advance(sink, &key, ticket);
                }
            }
            Followers::GoOnceSettled => {}
            Followers::Wait => {
                self.block(lane, &key, &name);
                if let Some(sink) = sink {
                    self.hold_followers(sink, &key, ticket);
                }
            }
        }
        if complete {
            self.open_gates(ticket.item);
        }
    }

    /// The next message of a key may go to the sink.
    pub(super) fn advance(&mut self, sink: SinkIndex, key: &Arc<str>, done: Ticket) {
        let desk = &mut self.sinks[sink];
        let Some(chain) = desk.chains.get_mut(key) else { return };
        if chain.front() != Some(&done) {
            chain.retain(|ticket| *ticket != done);
            return;
        }
        chain.pop_front();
        match chain.front().copied() {
            Some(next) => self.join_queue(sink, next),
            None => {
                desk.chains.remove(key);
            }
        }
    }

    /// One more row of this key is on its way to the waiting table (or blocks from the dead letters).
    fn block(&mut self, lane: Lane, key: &Arc<str>, leg: &Arc<str>) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.blocked.add_unwritten(key, leg, self.round);
        }
    }

    /// Sends all that queue behind `head` to wait as well.
    fn hold_followers(&mut self, sink: SinkIndex, key: &Arc<str>, head: Ticket) {
        let Some(chain) = self.sinks[sink].chains.get_mut(key) else {
            return;
        };
        // One that was held itself was never in the chain, or stands behind the head that holds it.
        if chain.front() != Some(&head) {
            chain.retain(|ticket| *ticket != head);
            return;
        }
        let followers: Vec<Ticket> = chain.drain(..).skip(1).collect();
        self.sinks[sink].chains.remove(key);
        for follower in followers {
            self.hold(follower);
        }
    }

    /// All legs of an item are decided: it is ready to be written.
    fn settle_item(&mut self, id: ItemId) {
        let item = &self.items[id];
        let all_delivered = item.legs.iter().all(|leg| leg.verdict == Some(Verdict::Delivered));
        let listed = if all_delivered { &[] } else { item.legs.as_slice() };
        let legs = listed.iter().filter_map(|leg| {
            Some(LegSettlement {
                leg: leg.name.clone(),
                verdict: leg.verdict.clone()?,
            })
        });
        let settlement = Settlement {
            place: item.delivery.place.clone(),
            epoch: item.epoch,
            legs: legs.collect(),
            key: item.key.clone(),
        };
        self.to_settle.items.push(id);
        self.to_settle.settlements.push(settlement);
    }
}

/// What a verdict means for the messages behind it.
pub(super) enum Followers {
    /// They may go.
    Go,
    /// They may go once the verdict is written. A crash before that would bring the message back, and it could arrive
    /// behind them.
    GoOnceSettled,
    /// They have to wait as well.
    Wait,
}

pub(super) fn effect_on_followers(verdict: &Verdict) -> Followers {
    match verdict {
        Verdict::Retry { charged: true, .. } if planted!(FollowersGo) => Followers::Go,
        Verdict::Delivered => Followers::Go,
        Verdict::Dead { blocks: false, .. }
        | Verdict::Retry {
            state: RetryState::Parked,
            ..
        } => Followers::GoOnceSettled,
        Verdict::Dead { blocks: true, .. }
        | Verdict::Retry {
            state: RetryState::Retry | RetryState::Down,
            ..
        }
        | Verdict::Hold => Followers::Wait,
    }
}
