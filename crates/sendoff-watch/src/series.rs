//! The values of one topic at one sink.

use sendoff::Outcome;
use sendoff::store::{DeadReason, Table};
use sendoff_relay::PublishedMessage;
use tokio::time::Instant;

use crate::clock::{Clock, micros};
use crate::histogram::Histogram;

/// The outcomes of a sink, as label values.
pub(crate) const OUTCOMES: [&str; 6] = ["delivered", "temporary", "permanent", "unknown", "down", "not_yet"];
/// The reasons of dead letters, as label values.
pub(crate) const REASONS: [DeadReason; DeadReason::ALL.len()] = DeadReason::ALL;

#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    pub(crate) outcomes: [u64; OUTCOMES.len()],
    pub(crate) retried: u64,
    pub(crate) dead: [u64; REASONS.len()],
    pub(crate) emit_to_ready: Histogram,
    pub(crate) ready_to_claimed: Histogram,
    pub(crate) claimed_to_confirmed: Histogram,
    pub(crate) begin_to_confirmed: Histogram,
}

impl Series {
    /// A sink has answered for a message. Without the database's clock, only times of this process are measured.
    pub(crate) fn published(&mut self, message: &PublishedMessage<'_>, answered: Instant, clock: Option<&Clock>) {
        self.outcomes[outcome(message.outcome)] += 1;
        if *message.outcome != Outcome::Delivered {
            return;
        }
        let (outgoing, claim) = (message.outgoing, message.claim);
        self.claimed_to_confirmed.add_duration(answered - claim.at);
        let Some(clock) = clock else { return };
        let created = micros(outgoing.created_at);
        let since = |then: i64, at: i64| u64::try_from(at - then).unwrap_or(0);
        let in_ready = outgoing.row_ref.table == Table::Ready;
        // A scheduled message waited on purpose before its first attempt.
        if in_ready || outgoing.row_ref.sink.is_some() {
            self.begin_to_confirmed.add(since(created, clock.at(answered)));
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

    /// Attempts that failed and were charged: those before another one, and the last ones.
    pub(crate) fn failed(&self) -> u64 {
        self.retried + self.dead[reason(DeadReason::Exhausted)] + self.dead[reason(DeadReason::Permanent)]
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
    // It is always found: the list has all of them.
    REASONS.iter().position(|listed| *listed == reason).unwrap_or_default()
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
