//! The stall detector: messages are ready, and no relay takes them.

use std::time::Duration;

use rustc_hash::FxHashMap;
use sendoff::store::{Lane, LaneHead};
use tokio::time::Instant;

/// Remembers since when the first message of each lane has been unclaimed.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    unclaimed: FxHashMap<Lane, (i64, Instant)>,
}

/// A message that no relay takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stalled {
    pub(crate) lane: Lane,
    pub(crate) seq: i64,
    /// How long it has been unclaimed.
    pub(crate) unclaimed: Duration,
}

impl Stall {
    /// Records the lanes' first messages; `mine` are the lanes of this relay, with the messages in flight of each. Returns the
    /// message that has been unclaimed for longest, if that is `after` or more.
    ///
    /// A message is claimed while a relay has messages of its lane in flight. What another live relay has in flight is
    /// not known here: that relay watches its own lanes.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        heads: &[LaneHead],
        mine: &[(Lane, usize)],
        after: Duration,
    ) -> Option<Stalled> {
        let mut found = FxHashMap::default();
        for head in heads {
            let claimed = match mine.iter().find(|(lane, _)| *lane == head.lane) {
                Some((_, in_flight)) => *in_flight > 0,
                None => head.held,
            };
            if claimed {
                continue;
            }
            let since = match self.unclaimed.get(&head.lane) {
                Some((seq, since)) if *seq == head.seq => *since,
                _ => now,
            };
            found.insert(head.lane, (head.seq, since));
        }
        self.unclaimed = found;
        let left_alone = self.unclaimed.iter().map(|(lane, (seq, since))| Stalled {
            lane: *lane,
            seq: *seq,
            unclaimed: now - *since,
        });
        left_alone
            .filter(|stalled| stalled.unclaimed >= after)
            .max_by_key(|stalled| (stalled.unclaimed, stalled.lane))
    }

    /// There was no answer, or there is nothing to claim.
    pub(crate) fn forget(&mut self) {
        self.unclaimed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_secs(60);

    fn head(lane: Lane, seq: i64, held: bool) -> LaneHead {
        LaneHead {
            lane,
            seq,
            age: Duration::ZERO,
            held,
        }
    }

    fn seen(stall: &mut Stall, at: u64, heads: &[LaneHead], mine: &[(Lane, usize)]) -> Option<Lane> {
        // Instants cannot be made up, only moved.
        thread_local!(static BEGAN: Instant = Instant::now());
        let now = BEGAN.with(|began| *began) + Duration::from_secs(at);
        stall.look(now, heads, mine, AFTER).map(|stalled| stalled.lane)
    }

    #[test]
    fn a_message_that_nobody_takes_for_long_is_a_stall() {
        let mut stall = Stall::default();
        let heads = [head(1, 10, false), head(2, 11, false)];
        assert_eq!(seen(&mut stall, 0, &heads, &[]), None);
        assert_eq!(seen(&mut stall, 59, &heads, &[]), None);
        assert_eq!(seen(&mut stall, 60, &heads[..1], &[]), Some(1));
        assert_eq!(seen(&mut stall, 61, &[], &[]), None, "it is gone");
        assert_eq!(seen(&mut stall, 62, &heads[..1], &[]), None, "the time starts again");
    }

    #[test]
    fn lanes_that_move_are_no_stall() {
        let mut stall = Stall::default();
        for at in 0..200 {
            assert_eq!(seen(&mut stall, at, &[head(1, at as i64, false)], &[]), None);
        }
    }

    #[test]
    fn messages_in_flight_and_lanes_of_others_are_claimed() {
        let mut stall = Stall::default();
        let heads = [head(1, 10, true), head(2, 11, true)];
        for at in [0, 100, 200] {
            assert_eq!(
                seen(&mut stall, at, &heads, &[(1, 3)]),
                None,
                "lane 2 belongs to another relay"
            );
        }
        assert_eq!(seen(&mut stall, 300, &heads, &[(1, 0)]), None);
        assert_eq!(
            seen(&mut stall, 360, &heads, &[(1, 0)]),
            Some(1),
            "held here and not read"
        );
    }
}
