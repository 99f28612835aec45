//! Numbers that lie near each other.

/// How far apart two numbers of one run may be: a walk over as many rows costs no more than another statement.
const NEAR: i64 = 64;
/// How long a run may be.
const LONGEST: usize = 32 << 10;

/// Some numbers from a first one on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: i64,
    /// 1 for a number that is meant, 0 for one that is not. The last one is.
    pub(super) meant: Vec<u8>,
}

impl Run {
    pub(super) fn last(&self) -> i64 {
        self.first.saturating_add_unsigned((self.meant.len() - 1) as u64)
    }

    /// Takes the number in, if it is near enough.
    fn take(&mut self, seq: i64) -> bool {
        let gap = seq.saturating_sub(self.last());
        if gap > NEAR || self.meant.len() >= LONGEST {
            return false;
        }
        for _ in 1..gap {
            self.meant.push(0);
        }
        if gap > 0 {
            self.meant.push(1);
        }
        true
    }
}

/// All the numbers, each in one run.
pub(super) fn runs(mut seqs: Vec<i64>) -> Vec<Run> {
    seqs.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    for seq in seqs {
        if !runs.last_mut().is_some_and(|run| run.take(seq)) {
            let meant = vec![1];
            runs.push(Run { first: seq, meant });
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(run: &Run) -> Vec<i64> {
        let meant = (run.first..).zip(&run.meant).filter(|(_, meant)| **meant == 1);
        meant.map(|(seq, _)| seq).collect()
    }

    proptest! {
        #[test]
        fn runs_have_exactly_the_numbers_that_were_named(
            start in prop_oneof![Just(i64::MIN), Just(0), Just(i64::MAX / 2), any::<i32>().prop_map(i64::from)],
            gaps in prop::collection::vec(prop_oneof![4 => 0..3_i64, 1 => 60..70_i64, 1 => 1000..100_000_i64], 0..200),
        ) {
            let mut named = vec![start];
            named.extend(gaps.iter().scan(start, |at, gap| {
                *at = at.saturating_add(*gap);
                Some(*at)
            }));
            let runs = runs(named.iter().rev().copied().collect());
            let found: Vec<i64> = runs.iter().flat_map(numbers).collect();
            named.dedup();
            prop_assert_eq!(found, named);
            prop_assert!(runs.iter().all(|run| numbers(run).last() == Some(&run.last())));
        }
    }

    #[test]
    fn numbers_far_from_each_other_are_in_runs_of_their_own() {
        let firsts: Vec<i64> = runs(vec![1, 2, 66, 131]).iter().map(|run| run.first).collect();
        assert_eq!(firsts, [1, 131]);
    }
}
