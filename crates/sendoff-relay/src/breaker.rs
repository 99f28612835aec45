//! A sink that said it is down is left alone for a while, then probed with one message.

use std::time::Duration;

use tokio::time::Instant;

/// The first pause after a sink went down; doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// Whether a sink may be called.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    down: Option<Down>,
}

#[derive(Debug)]
struct Down {
    until: Instant,
    pause: Duration,
    probing: bool,
}

impl Breaker {
    /// The sink is closed to everything until this; `None` when it can be used, or probed.
    pub(crate) fn shut_until(&self, now: Instant) -> Option<Instant> {
        self.down
            .as_ref()
            .filter(|down| down.until > now)
            .map(|down| down.until)
    }

    /// How many messages may go into the next batch.
    pub(crate) fn allows(&self, now: Instant, batch: usize) -> usize {
        match &self.down {
            None => batch,
            Some(down) if down.until > now || down.probing => 0,
            Some(_) => 1,
        }
    }

    /// A batch was handed over.
    pub(crate) fn called(&mut self) {
        if let Some(down) = &mut self.down {
            down.probing = true;
        }
    }

    /// The sink answered, whatever it answered.
    pub(crate) fn up(&mut self) -> bool {
        self.down.take().is_some()
    }

    /// The sink said that it is down. Several batches may say so at once: that counts once.
    pub(crate) fn down(&mut self, now: Instant, asked: Option<Duration>, rng: &mut fastrand::Rng) -> bool {
        let first = self.down.is_none();
        let pause = match &self.down {
            None => FIRST,
            Some(down) if down.probing => (down.pause * 2).min(LONGEST),
            Some(down) => down.pause,
        };
        let wait = asked.unwrap_or(pause).mul_f64(1.0 + 0.1 * rng.f64());
        self.down = Some(Down {
            until: now + wait,
            pause,
            probing: false,
        });
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_sink_that_is_down_is_probed_by_one_message_after_growing_pauses() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut breaker = Breaker::default();
        assert_eq!(breaker.allows(Instant::now(), 10), 10);
        assert!(breaker.down(Instant::now(), None, &mut rng));
        assert!(!breaker.down(Instant::now(), None, &mut rng));
        assert_eq!(breaker.allows(Instant::now(), 10), 0);
        tokio::time::advance(Duration::from_millis(1100)).await;
        assert_eq!(breaker.allows(Instant::now(), 10), 1);
        breaker.called();
        assert_eq!(breaker.allows(Instant::now(), 10), 0);
        breaker.down(Instant::now(), None, &mut rng);
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(breaker.allows(Instant::now(), 10), 0);
        tokio::time::advance(Duration::from_millis(700)).await;
        assert_eq!(breaker.allows(Instant::now(), 10), 1);
        assert!(breaker.up());
        assert_eq!(breaker.allows(Instant::now(), 10), 10);
    }
}
