//! Turns outcomes into verdicts, and applies verdicts to the followers of a key.

use std::time::Duration;

use super::order::{Followers, Next};
use super::unanswered::pause_after;
use super::*;
use crate::hooks::Call;
use crate::{DeadLetter, OnFailure};
use sendoff::context::LOG_CONTEXT;
use sendoff::store::{DeadReason, DeliverySettlement, RetryState};
use sendoff::{Outcome, Reason};

/// How long a message with an unknown outcome waits while the sink answers for others.
const AGAIN_DELAY: Duration = Duration::from_millis(500);

impl Dispatcher {
    /// A sink has answered. What this shows about the sink counts even if another relay has the message now.
    pub(crate) fn outcome(&mut self, sink: SinkIndex, ticket: Ticket, outcome: Outcome, now: Instant) {
        if let Some(entry) = self.entries.get_mut(ticket.entry) {
            entry.deliveries[ticket.delivery].with_sink = false;
        }
        match outcome {
            Outcome::SinkDown(_) | Outcome::Unknown(_) => {}
            // The sink was not called: another message has to be the probe.
            Outcome::NotYet(_) => self.sinks[sink].breaker.dropped(),
            Outcome::Delivered | Outcome::Temporary(_) | Outcome::Permanent(_) => {
                if let Some(outage) = self.sinks[sink].breaker.up(now) {
                    tracing::info!(
                        event = "sink_up",
                        sink = &*self.plan.sinks[sink].name,
                        down_ms = outage.as_millis() as u64,
                        "sink is up again"
                    );
                }
                if let Some(entry) = self.entries.get(ticket.entry) {
                    self.sinks[sink].unanswered.clear(entry.outgoing.id);
                }
            }
        }
        match outcome {
            Outcome::SinkDown(reason) => self.sink_down(sink, ticket, &reason, now),
            Outcome::Unknown(_) if planted!(SettlesUnconfirmed) => self.decide(ticket, Verdict::Delivered),
            Outcome::Unknown(reason) => self.unknown(sink, ticket, &reason, now),
            _ if !self.entries.contains_key(ticket.entry) => {}
            Outcome::Delivered => {
                let entry = &self.entries[ticket.entry];
                let delivery = &entry.deliveries[ticket.delivery].name;
                self.hooks.call(|| Call::Sent(entry.outgoing.clone(), delivery.clone()));
                self.decide(ticket, Verdict::Delivered);
            }
            Outcome::Temporary(reason) => self.failed(ticket, &reason),
            Outcome::Permanent(reason) => self.dead(ticket, DeadReason::Permanent, reason.text().to_owned()),
            Outcome::NotYet(reason) => self.too_early(ticket, &reason),
        }
    }

    fn too_early(&mut self, ticket: Ticket, reason: &Reason) {
        let parks = self.entries[ticket.entry].key.is_some();
        let state = if parks { RetryState::Parked } else { RetryState::Retry };
        let verdict = Verdict::Retry {
            state,
            delay: reason.asked_delay().unwrap_or(TOO_EARLY_DELAY),
            charged: false,
            error: reason.text().to_owned(),
        };
        self.decide(ticket, verdict);
    }

    /// How often the sink gave no answer for this message while it answered for others in between.
    fn strike(&mut self, sink: SinkIndex, ticket: Ticket, now: Instant) -> u32 {
        let entry = self.entries.get(ticket.entry);
        entry.map_or(0, |entry| self.sinks[sink].unanswered.strike(entry.outgoing.id, now))
    }

    /// The sink reports that it is down. A message that gets this answer repeatedly while others are delivered does not open
    /// the circuit breaker: it waits longer each time.
    fn sink_down(&mut self, sink: SinkIndex, ticket: Ticket, reason: &Reason, now: Instant) {
        let strikes = self.strike(sink, ticket, now);
        if strikes > 0 {
            self.sinks[sink].breaker.dropped();
            return self.wait_for_sink(ticket, pause_after(strikes), reason.text().to_owned());
        }
        self.shut(sink, ticket, reason, now);
    }

    /// It is unknown whether the message arrived. No attempt is charged and it is sent again as soon as the sink answers,
    /// unless the sink answered for others since this happened before: then the message is the cause.
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

    /// A sink gives no answers. Its queued deliveries wait in the table, not in flight, where they would take room from others.
    fn shut(&mut self, sink: SinkIndex, ticket: Ticket, reason: &Reason, now: Instant) {
        if self.sinks[sink].breaker.down(now, reason.asked_delay(), &mut self.rng) {
            tracing::warn!(
                event = "sink_down",
                sink = &*self.plan.sinks[sink].name,
                error = reason.text(),
                "sink is down; its deliveries are deferred"
            );
        }
        let until = self.sinks[sink].breaker.shut_until(now);
        let delay = until.map_or(Duration::ZERO, |until| until - now);
        self.wait_for_sink(ticket, delay, reason.text().to_owned());
        self.empty_queue(sink, delay, "the sink is down");
    }

    /// Defers all deliveries that queue at a sink.
    pub(super) fn empty_queue(&mut self, sink: SinkIndex, delay: Duration, why: &str) {
        for queued in std::mem::take(&mut self.sinks[sink].queue) {
            self.wait_for_sink(queued, delay, why.to_owned());
        }
    }

    fn failed(&mut self, ticket: Ticket, reason: &Reason) {
        let entry = &self.entries[ticket.entry];
        let policy = self.plan.topic(&entry.outgoing.topic).policy;
        let attempts = entry.outgoing.attempts + 1;
        let limit = entry.outgoing.max_attempts.unwrap_or(policy.retry.attempts);
        if attempts >= limit {
            return self.dead(ticket, DeadReason::Exhausted, reason.text().to_owned());
        }
        let backoff = policy.retry.delay(entry.outgoing.attempts, &mut self.rng);
        let delay = reason.asked_delay().map_or(backoff, |asked| asked.max(backoff));
        let parks = entry.key.is_some() && policy.on_failure == OnFailure::Park;
        let state = if parks { RetryState::Parked } else { RetryState::Retry };
        let (delivery, error) = (&entry.deliveries[ticket.delivery].name, reason.text().to_owned());
        tracing::warn!(
            event = "message_failed", id = %entry.outgoing.id, topic = entry.outgoing.topic, sink = &**delivery, attempts,
            retry_in_ms = delay.as_millis() as u64, context = entry.outgoing.headers.get(LOG_CONTEXT), error,
            "delivery failed; will retry"
        );
        self.hooks.call(|| {
            let (outgoing, sink) = (entry.outgoing.clone(), delivery.clone());
            Call::Failed(outgoing, sink, attempts, error.as_str().into(), delay)
        });
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
        let entry = &self.entries[ticket.entry];
        let policy = self.plan.topic(&entry.outgoing.topic).policy;
        let blocks = entry.key.is_some() && policy.on_failure == OnFailure::Block;
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
                state: RetryState::Deferred,
                delay,
                charged: planted!(OutageCharged),
                error,
            },
        );
    }

    /// Records the verdict on a delivery, and applies it to the messages behind it.
    pub(super) fn decide(&mut self, ticket: Ticket, verdict: Verdict) {
        let Some(entry) = self.entries.get_mut(ticket.entry) else {
            return;
        };
        let delivery = &mut entry.deliveries[ticket.delivery];
        if delivery.verdict.is_some() {
            return;
        }
        if let Verdict::Dead { reason, error, .. } = &verdict {
            tracing::error!(
                event = "message_dead", id = %entry.outgoing.id, topic = entry.outgoing.topic, sink = &*delivery.name,
                reason = reason.as_str(), context = entry.outgoing.headers.get(LOG_CONTEXT), error,
                "delivery failed and is not retried; it becomes a dead letter"
            );
            self.hooks.call(|| {
                Call::Dead(DeadLetter {
                    outgoing: entry.outgoing.clone(),
                    sink: delivery.name.clone(),
                    reason: *reason,
                    error: error.clone(),
                })
            });
        }
        let followers = effect_on_followers(&verdict);
        delivery.verdict = Some(verdict);
        if let (true, Some(sink)) = (std::mem::take(&mut delivery.at_sink), delivery.sink) {
            self.sinks[sink].load -= 1;
        }
        entry.undecided -= 1;
        let is_open = entry.undecided > 0;
        let key = entry.key_ref(ticket.delivery).map(|at| (at, entry.member(ticket)));
        if !is_open {
            self.settle_entry(ticket.entry);
        }
        let Some((at, member)) = key else { return };
        match self.order.decided(&at, member, followers, is_open) {
            Next::Nothing => {}
            Next::Send(next) => self.advance(next),
            Next::Wait(behind) => behind.into_iter().for_each(|member| self.hold(member.ticket)),
        }
        if !is_open && self.order.has_undecided() {
            self.follow_complete(ticket.entry);
        }
    }

    /// The next message of a key may go to its sink.
    pub(super) fn advance(&mut self, next: Ticket) {
        let entry = self.entries.get(next.entry);
        if let Some(sink) = entry.and_then(|entry| entry.deliveries[next.delivery].sink) {
            self.join_queue(sink, next);
        }
    }

    /// Blocks a delivery behind the head of its key, in order.
    pub(super) fn hold(&mut self, ticket: Ticket) {
        let Some(entry) = self.entries.get(ticket.entry) else {
            return;
        };
        let at = entry.key_ref(ticket.delivery);
        if at.is_none_or(|at| self.order.has_to_wait(&at, entry.member(ticket))) {
            self.decide(ticket, Verdict::Blocked);
        }
    }

    /// A message is being written: the deliveries that queued behind it follow.
    fn follow_complete(&mut self, id: EntryId) {
        for delivery in 0..self.entries[id].deliveries.len() {
            let Some(at) = self.entries[id].key_ref(delivery) else {
                return;
            };
            for member in self.order.complete(&at, id) {
                self.hold(member.ticket);
            }
        }
    }

    /// All deliveries of an entry are decided: it is ready to be written.
    fn settle_entry(&mut self, id: EntryId) {
        let entry = &self.entries[id];
        let all_delivered = entry
            .deliveries
            .iter()
            .all(|delivery| delivery.verdict == Some(Verdict::Delivered));
        let listed = if all_delivered && !self.keeps_delivered {
            &[]
        } else {
            entry.deliveries.as_slice()
        };
        let deliveries = listed.iter().filter_map(|delivery| {
            Some(DeliverySettlement {
                sink: delivery.name.clone(),
                verdict: delivery.verdict.clone()?,
            })
        });
        let settlement = Settlement {
            row_ref: entry.outgoing.row_ref.clone(),
            epoch: entry.epoch,
            deliveries: deliveries.collect(),
            key: entry.key.clone(),
            attempts: entry.outgoing.attempts,
        };
        self.to_settle.entries.push(id);
        self.to_settle.settlements.push(settlement);
    }
}

/// The effect of a verdict on the messages behind it.
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
            state: RetryState::Retry | RetryState::Deferred,
            ..
        }
        | Verdict::Paused { .. } => Followers::Wait { failed: true },
        Verdict::Blocked => Followers::Wait { failed: false },
    }
}
