//! Groups numbers that are close to each other.

/// How many numbers a mask can tell apart.
const WIDTH: i64 = 64;

/// Numbers from a first to a last one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: i64,
    pub(super) last: i64,
    /// A bit for each number from the first on, set for those that are meant; `None` when there is no gap, however many they
    /// are.
    pub(super) mask: Option<i64>,
    /// How many are meant.
    pub(super) rows: usize,
}

impl Run {
    fn new(seq: i64) -> Self {
        Self {
            first: seq,
            last: seq,
            mask: None,
            rows: 1,
        }
    }

    /// Takes in the next number, if it is near enough.
    fn take(&mut self, seq: i64) -> bool {
        let (length, at) = (self.last - self.first + 1, seq.saturating_sub(self.first));
        if at < length {
            return true;
        }
        if self.mask.is_none() && at == length {
            self.last = seq;
            self.rows += 1;
            return true;
        }
        if at >= WIDTH {
            return false;
        }
        self.mask = Some(self.mask.unwrap_or_else(|| (1 << length) - 1) | 1 << at);
        self.last = seq;
        self.rows += 1;
        true
    }
}

/// All the numbers, which come in their order, each in one run.
pub(super) fn runs(seqs: impl IntoIterator<Item = i64>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for seq in seqs {
        if !runs.last_mut().is_some_and(|run| run.take(seq)) {
            runs.push(Run::new(seq));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the statements find them.
    fn numbers(run: &Run) -> Vec<i64> {
        let is_meant = |seq: &i64| run.mask.is_none_or(|mask| mask >> (seq - run.first) & 1 == 1);
        (run.first..=run.last).filter(is_meant).collect()
    }

    proptest! {
        #[test]
        fn runs_have_exactly_the_numbers_that_were_named(
            start in prop_oneof![Just(i64::MIN), Just(0), Just(i64::MAX / 2), any::<i32>().prop_map(i64::from)],
            gaps in prop::collection::vec(prop_oneof![90 => Just(1), 3 => 0..3_i64, 1 => 60..70_i64, 1 => 1000..100_000_i64], 0..400),
        ) {
            let mut named = vec![start];
            named.extend(gaps.iter().scan(start, |at, gap| {
                *at = at.saturating_add(*gap);
                Some(*at)
            }));
            let runs = runs(named.iter().copied());
            let found: Vec<i64> = runs.iter().flat_map(numbers).collect();
            named.dedup();
            prop_assert_eq!(runs.iter().map(|run| run.rows).sum::<usize>(), named.len());
            prop_assert_eq!(found, named);
            prop_assert!(runs.iter().all(|run| numbers(run).last() == Some(&run.last)));
        }
    }

    #[test]
    fn numbers_without_a_gap_are_one_run_and_others_at_most_as_many_as_a_mask_has_bits() {
        assert_eq!(
            runs(1..=1000),
            [Run {
                first: 1,
                last: 1000,
                mask: None,
                rows: 1000
            }]
        );
        let firsts: Vec<i64> = runs([1, 2, 64, 65, 131]).iter().map(|run| run.first).collect();
        assert_eq!(firsts, [1, 65, 131]);
    }
}
