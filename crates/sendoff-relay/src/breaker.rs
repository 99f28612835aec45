//! The circuit breaker: a sink that is down gets nothing for a while, then one message as a probe, then larger batches.

use std::time::Duration;

use tokio::time::Instant;

use crate::SinkState;

/// The first pause after a sink went down; doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(4);

/// Whether a sink may be called, and with how much.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Breaker {
    state: State,
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
enum State {
    /// It takes messages.
    #[default]
    Closed,
    /// It is down: it gets nothing before `until`, then one message at a time.
    Open {
        since: Instant,
        until: Instant,
        pause: Duration,
        probing: bool,
    },
    /// It is up again: it gets one batch at a time, each larger than the one before, so that a backlog does not overload a
    /// broker that has just started.
    RampingUp { batch: usize, under_way: bool },
}

impl Breaker {
    /// The state for health reports.
    pub(crate) fn state(&self) -> SinkState {
        match self.state {
            State::Closed => SinkState::Up,
            State::Open { .. } => SinkState::Down,
            State::RampingUp { .. } => SinkState::RampingUp,
        }
    }

    /// What it allows now, without its times.
    #[cfg(test)]
    pub(crate) fn shape(&self, now: Instant) -> i64 {
        match self.state {
            State::Closed => 0,
            State::Open { until, probing, .. } => 1 + 2 * i64::from(until > now) + i64::from(probing),
            State::RampingUp { under_way, .. } => 5 + i64::from(under_way),
        }
    }

    /// Since when it is down, and until when it gets nothing; `None` while it takes messages.
    pub(crate) fn outage(&self) -> Option<(Instant, Instant)> {
        match self.state {
            State::Open { since, until, .. } => Some((since, until)),
            State::Closed | State::RampingUp { .. } => None,
        }
    }

    /// The sink is closed to everything until this; `None` when it can be used, or probed.
    pub(crate) fn shut_until(&self, now: Instant) -> Option<Instant> {
        match self.state {
            State::Open { until, .. } if until > now => Some(until),
            State::Open { .. } | State::Closed | State::RampingUp { .. } => None,
        }
    }

    /// Whether it is down, and may be probed or is being probed.
    pub(crate) fn is_probed(&self, now: Instant) -> bool {
        matches!(self.state, State::Open { until, .. } if until <= now)
    }

    /// Whether it is down: what is handed to it is a probe.
    pub(crate) fn is_probing(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// How many messages may go into the next batch.
    pub(crate) fn allows(&self, now: Instant, most: usize) -> usize {
        match self.state {
            State::Closed => most,
            State::Open { until, probing, .. } if until > now || probing || planted!(NeverProbes) => 0,
            State::Open { .. } => 1,
            State::RampingUp { under_way: true, .. } => 0,
            State::RampingUp { batch, .. } => batch.min(most),
        }
    }

    /// A batch was handed over.
    pub(crate) fn called(&mut self) {
        match &mut self.state {
            State::Closed => {}
            State::Open { probing, .. } => *probing = true,
            State::RampingUp { under_way, .. } => *under_way = true,
        }
    }

    /// The sink gave an answer about a message. Returns how long it was down, if it was down until now.
    pub(crate) fn up(&mut self, now: Instant) -> Option<Duration> {
        let State::Open { since, .. } = self.state else {
            return None;
        };
        self.state = State::RampingUp {
            batch: 1,
            under_way: true,
        };
        Some(now - since)
    }

    /// A batch that was handed over was dropped without an answer: the sink may be called as if it had not been.
    pub(crate) fn dropped(&mut self) {
        match &mut self.state {
            State::Closed => {}
            State::Open { probing, .. } => *probing = false,
            State::RampingUp { under_way, .. } => *under_way = false,
        }
    }

    /// A whole batch was answered. While the sink ramps up, the next one may be about twice as large.
    pub(crate) fn answered(&mut self, most: usize, rng: &mut fastrand::Rng) {
        if let State::RampingUp { batch, .. } = self.state {
            // Relays that saw the same outage must not grow in step.
            let next = batch * 2 + rng.usize(0..=batch);
            self.state = if next >= most {
                State::Closed
            } else {
                State::RampingUp {
                    batch: next,
                    under_way: false,
                }
            };
        }
    }

    /// The sink is down. Several batches may report it together: that counts once. Returns whether it was up before.
    pub(crate) fn down(&mut self, now: Instant, asked: Option<Duration>, rng: &mut fastrand::Rng) -> bool {
        let (pause, since) = match self.state {
            State::Closed | State::RampingUp { .. } => (FIRST, None),
            State::Open {
                pause,
                since,
                probing: true,
                ..
            } => ((pause * 2).min(LONGEST), Some(since)),
            State::Open { pause, since, .. } => (pause, Some(since)),
        };
        let wait = asked.unwrap_or(pause).mul_f64(1.0 + 0.1 * rng.f64());
        self.state = State::Open {
            since: since.unwrap_or(now),
            until: now + wait,
            pause,
            probing: false,
        };
        since.is_none()
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
    }

    #[tokio::test(start_paused = true)]
    async fn relays_that_saw_the_same_outage_do_not_come_back_in_step() {
        let now = Instant::now();
        for asked in [None, Some(Duration::from_secs(4))] {
            let pause = asked.unwrap_or(FIRST);
            let waits: Vec<Duration> = (0..100)
                .map(|seed| {
                    let mut breaker = Breaker::default();
                    breaker.down(now, asked, &mut fastrand::Rng::with_seed(seed));
                    breaker.shut_until(now).unwrap() - now
                })
                .collect();
            assert!(
                waits.iter().all(|wait| (pause..=pause.mul_f64(1.1)).contains(wait)),
                "{waits:?}"
            );
            let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*most - *least > pause.mul_f64(0.08), "from {least:?} to {most:?}");
        }
        // Nor do they grow in step.
        let sizes: std::collections::BTreeSet<usize> = (0..100)
            .map(|seed| {
                let mut rng = fastrand::Rng::with_seed(seed);
                let mut breaker = Breaker {
                    state: State::RampingUp {
                        batch: 100,
                        under_way: true,
                    },
                };
                breaker.answered(500, &mut rng);
                breaker.allows(now, 500)
            })
            .collect();
        assert!(sizes.len() > 20 && *sizes.first().unwrap() >= 200 && *sizes.last().unwrap() <= 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sink_that_came_back_gets_one_batch_at_a_time_each_larger_than_before() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut breaker = Breaker::default();
        breaker.down(Instant::now(), None, &mut rng);
        tokio::time::advance(Duration::from_millis(1100)).await;
        breaker.called();
        assert!(breaker.up(Instant::now()).is_some());
        assert!(breaker.up(Instant::now()).is_none(), "it comes back once");
        let mut sizes = vec![1];
        loop {
            assert_eq!(breaker.allows(Instant::now(), 500), 0, "one batch at a time");
            breaker.answered(500, &mut rng);
            let size = breaker.allows(Instant::now(), 500);
            sizes.push(size);
            if size == 500 {
                break;
            }
            breaker.called();
        }
        assert!(
            sizes.windows(2).all(|pair| pair[0] * 2 <= pair[1] || pair[1] == 500),
            "{sizes:?}"
        );
        assert!(sizes.len() > 4, "{sizes:?}");
        // Once it takes everything, batches go side by side.
        breaker.called();
        assert_eq!(breaker.allows(Instant::now(), 500), 500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_was_dropped_is_made_again() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut breaker = Breaker::default();
        breaker.down(Instant::now(), None, &mut rng);
        tokio::time::advance(Duration::from_millis(1100)).await;
        breaker.called();
        breaker.dropped();
        assert_eq!(breaker.allows(Instant::now(), 500), 1);
        breaker.called();
        breaker.up(Instant::now());
        breaker.dropped();
        assert_eq!(
            breaker.allows(Instant::now(), 500),
            1,
            "it has come back, and gets its first batch"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_sink_that_goes_down_while_it_ramps_up_starts_over() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut breaker = Breaker::default();
        breaker.down(Instant::now(), None, &mut rng);
        tokio::time::advance(Duration::from_millis(1100)).await;
        breaker.called();
        breaker.up(Instant::now());
        breaker.answered(500, &mut rng);
        breaker.called();
        assert!(breaker.down(Instant::now(), None, &mut rng));
        breaker.answered(500, &mut rng);
        assert_eq!(breaker.allows(Instant::now(), 500), 0);
    }
}
