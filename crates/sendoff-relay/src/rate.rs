//! The rate limit of a sink, in messages per second.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket that fills at the sink's rate and holds the tokens of a tenth of a second, so that bursts stay small.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Rate {
    per_second: f64,
    tokens: f64,
    filled: Instant,
}

impl Rate {
    pub(crate) fn new(per_second: f64, now: Instant) -> Self {
        Self {
            per_second,
            tokens: 1.0,
            filled: now,
        }
    }

    /// How many messages may be sent now.
    pub(crate) fn allows(&mut self, now: Instant) -> usize {
        let since = now.saturating_duration_since(self.filled).as_secs_f64();
        let table = (self.per_second / 10.0).max(1.0);
        self.tokens = (self.tokens + since * self.per_second).min(table);
        self.filled = now;
        self.tokens as usize
    }

    /// Takes the tokens of sent messages.
    pub(crate) fn took(&mut self, count: usize) {
        self.tokens -= count as f64;
    }

    /// When the next message may be sent.
    pub(crate) fn next(&self) -> Instant {
        let missing = (1.0 - self.tokens).max(0.0) / self.per_second;
        // Slightly more, so that rounding does not cause a useless wake-up.
        self.filled + Duration::from_secs_f64(missing) + Duration::from_micros(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_brings_the_rate_and_no_more() {
        let mut rate = Rate::new(100.0, Instant::now());
        let mut taken = 0;
        for _ in 0..1000 {
            let now = Instant::now();
            let allowed = rate.allows(now);
            assert!(allowed <= 10, "a burst of {allowed}");
            rate.took(allowed);
            taken += allowed;
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert!((990..=1010).contains(&taken), "{taken} in ten seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_rate_says_when_the_next_one_may_go() {
        let mut rate = Rate::new(0.5, Instant::now());
        assert_eq!(rate.allows(Instant::now()), 1);
        rate.took(1);
        let next = rate.next();
        assert!(next > Instant::now() + Duration::from_millis(1900));
        tokio::time::sleep_until(next).await;
        assert_eq!(rate.allows(Instant::now()), 1);
    }
}
