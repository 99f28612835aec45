//! The figures of one topic at one sink.

use sendoff::Outcome;
use sendoff::store::{DeadReason, Room};
use sendoff_relay::PublishedMessage;
use tokio::time::Instant;

use crate::clock::{Clock, micros};
use crate::histogram::Histogram;

/// How a sink may answer, as a label says it.
pub(crate) const OUTCOMES: [&str; 6] = ["delivered", "temporary", "permanent", "unknown", "down", "not_yet"];
/// Why a message may be dead, as a label says it.
pub(crate) const REASONS: [DeadReason; 6] = [
    DeadReason::Exhausted,
    DeadReason::Permanent,
    DeadReason::Expired,
    DeadReason::Unroutable,
    DeadReason::Unreadable,
    DeadReason::Crashed,
];

#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    pub(crate) outcomes: [u64; OUTCOMES.len()],
    pub(crate) retried: u64,
    pub(crate) dead: [u64; REASONS.len()],
    pub(crate) emit_to_ready: Histogram,
    pub(crate) ready_to_claimed: Histogram,
    pub(crate) claimed_to_confirmed: Histogram,
    pub(crate) commit_to_publish: Histogram,
}

impl Series {
    /// A sink has answered for a message. Without the database's clock, only what this process saw is measured.
    pub(crate) fn published(&mut self, message: &PublishedMessage<'_>, answered: Instant, clock: Option<&Clock>) {
        self.outcomes[outcome(message.outcome)] += 1;
        if *message.outcome != Outcome::Delivered {
            return;
        }
        let (delivery, claim) = (message.delivery, message.claim);
        self.claimed_to_confirmed.add_duration(answered - claim.at);
        let Some(clock) = clock else { return };
        let created = micros(delivery.created_at);
        let since = |then: i64, at: i64| u64::try_from(at - then).unwrap_or(0);
        let in_ready = delivery.place.room == Room::Ready;
        // A scheduled message that comes for the first time was meant to wait.
        if in_ready || delivery.place.leg.is_some() {
            self.commit_to_publish.add(since(created, clock.at(answered)));
        }
        if in_ready {
            let claimed = clock.at(claim.at);
            let ready = claim
                .caught_up
                .map_or(created, |at| clock.at(at).clamp(created, claimed.max(created)));
            self.emit_to_ready.add(since(created, ready));
            self.ready_to_claimed.add(since(ready, claimed));
        }
    }

    /// Attempts that failed and were charged.
    pub(crate) fn failed(&self) -> u64 {
        self.outcomes[1] + self.outcomes[2] + self.outcomes[3]
    }
}

fn outcome(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Delivered => 0,
        Outcome::Temporary(_) => 1,
        Outcome::Permanent(_) => 2,
        Outcome::Unknown(_) => 3,
        Outcome::SinkDown(_) => 4,
        Outcome::NotYet(_) => 5,
    }
}

pub(crate) fn reason(reason: DeadReason) -> usize {
    match reason {
        DeadReason::Exhausted => 0,
        DeadReason::Permanent => 1,
        DeadReason::Expired => 2,
        DeadReason::Unroutable => 3,
        DeadReason::Unreadable => 4,
        DeadReason::Crashed => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_where_their_numbers_say() {
        for (at, of) in REASONS.into_iter().enumerate() {
            assert_eq!(reason(of), at);
        }
        let all = [
            Outcome::Delivered,
            Outcome::Temporary("".into()),
            Outcome::Permanent("".into()),
            Outcome::Unknown("".into()),
            Outcome::SinkDown("".into()),
            Outcome::NotYet("".into()),
        ];
        assert_eq!(all.map(|of| OUTCOMES[outcome(&of)]), OUTCOMES);
    }
}
