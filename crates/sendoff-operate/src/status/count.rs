//! Counts that may be estimates.

use std::fmt;

use serde::Serialize;

use super::words::grouped;

/// A count, and how exact it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SampledCount {
    /// The counted number.
    pub count: u64,
    /// Whether the count is an estimate from a sample or from statistics.
    pub approximate: bool,
    /// Whether the real number may be higher, because counting stopped early.
    pub at_least: bool,
}

impl SampledCount {
    /// A count that is exact.
    pub fn exact(count: u64) -> Self {
        Self::counted(count, false)
    }

    /// A count without estimates; `at_least`: there may be more.
    pub fn counted(count: u64, at_least: bool) -> Self {
        Self {
            count,
            approximate: false,
            at_least,
        }
    }

    /// A count that stopped at `limit` rows.
    pub(super) fn up_to(limit: u32, count: u64) -> Self {
        Self::counted(count, count >= u64::from(limit))
    }

    /// The sum of two counts.
    #[must_use]
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            approximate: self.approximate || other.approximate,
            at_least: self.at_least || other.at_least,
        }
    }

    /// Whether the count is exactly one.
    pub(super) fn is_one(self) -> bool {
        self.count == 1 && !self.at_least
    }
}

impl fmt::Display for SampledCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mark, more) = (
            if self.approximate { "≈" } else { "" },
            if self.at_least { "+" } else { "" },
        );
        write!(f, "{mark}{}{more}", grouped(self.count))
    }
}

/// How a sample is scaled to all rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    factor: f64,
    approximate: bool,
    at_least: bool,
}

impl Scale {
    /// `sampled` rows of `known` ones were read; `cut`: there may be more than were read.
    pub(super) fn new(sampled: u64, known: u64, cut: bool) -> Self {
        let grows = cut && known > sampled && sampled > 0;
        Self {
            factor: if grows { known as f64 / sampled as f64 } else { 1.0 },
            approximate: grows,
            at_least: cut && !grows,
        }
    }

    pub(super) fn of(self, count: u64) -> SampledCount {
        SampledCount {
            count: (count as f64 * self.factor).round() as u64,
            approximate: self.approximate,
            at_least: self.at_least && count > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_shows_how_exact_it_is() {
        assert_eq!(SampledCount::exact(1_234_567).to_string(), "1,234,567");
        assert_eq!(SampledCount::exact(999).to_string(), "999");
        assert_eq!(SampledCount::up_to(10_000, 10_000).to_string(), "10,000+");
        assert_eq!(Scale::new(100, 100, false).of(40).to_string(), "40");
        assert_eq!(Scale::new(100, 12_300, true).of(50).to_string(), "≈6,150");
        assert_eq!(Scale::new(10_000, 10_000, true).of(10_000).to_string(), "10,000+");
    }
}
