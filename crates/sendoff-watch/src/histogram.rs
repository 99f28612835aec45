//! Histograms with fixed buckets.

use std::time::Duration;

/// Upper bounds of the buckets in microseconds, each with its text in seconds for Prometheus. They range from a fast broker
/// to a backlog of a day.
pub(crate) const STEPS: [(u64, &str); 18] = [
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (5_000_000, "5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
    (60_000_000, "60"),
    (300_000_000, "300"),
    (3_600_000_000, "3600"),
    (86_400_000_000, "86400"),
];

/// Counts by bucket.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    /// Not cumulative; the last bucket is for everything above.
    counts: [u64; STEPS.len() + 1],
    sum: u64,
}

impl Histogram {
    pub(crate) fn add(&mut self, micros: u64) {
        let at = STEPS.partition_point(|(end, _)| *end < micros);
        self.counts[at] += 1;
        self.sum = self.sum.saturating_add(micros);
    }

    pub(crate) fn add_duration(&mut self, duration: Duration) {
        self.add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// In seconds.
    pub(crate) fn sum(&self) -> f64 {
        self.sum as f64 / 1e6
    }

    /// Every bucket with the number of values up to its bound.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let ends = STEPS.iter().map(|(_, text)| *text).chain(["+Inf"]);
        let below = self.counts.iter().scan(0, |below, count| {
            *below += count;
            Some(*below)
        });
        ends.zip(below.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_up_to_the_end_of_their_step() {
        let mut histogram = Histogram::default();
        for micros in [0, 1_000, 1_001, 90_000_000_000] {
            histogram.add(micros);
        }
        histogram.add_duration(Duration::from_millis(20));
        let steps: Vec<_> = histogram.steps().collect();
        assert_eq!(&steps[..3], [("0.001", 2), ("0.0025", 3), ("0.005", 3)]);
        assert_eq!(
            (steps[4], steps[17], steps[18]),
            (("0.025", 4), ("86400", 4), ("+Inf", 5))
        );
        assert_eq!((histogram.count(), histogram.sum()), (5, 90_000.022_001));
    }

    #[test]
    fn the_steps_are_what_their_texts_say() {
        for (micros, text) in STEPS {
            assert_eq!(text.parse::<f64>().unwrap() * 1e6, micros as f64);
        }
    }
}
