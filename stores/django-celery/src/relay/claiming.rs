//! Claims rows, one batch ahead of publishing.

use std::sync::Arc;
use std::time::Duration;

use sendoff::Result;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::hand::Hand;
use super::liveness::touch;
use super::{Claimed, Settings};
use crate::{DjangoOutbox, Row};

/// The first pause after a batch that was not full; doubles up to `idle_time` while there is nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The longest pause between two signs of life, and between two looks at a database that cannot be reached.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Claiming {
    pub(super) outbox: DjangoOutbox,
    pub(super) settings: Arc<Settings>,
    pub(super) claimed: mpsc::Sender<Claimed>,
    pub(super) hand: Arc<Hand>,
    pub(super) is_down: watch::Receiver<bool>,
    pub(super) stop: CancellationToken,
    /// Whether to end when there is nothing more, or nobody to send it to.
    pub(super) once: bool,
}

impl Claiming {
    pub(super) async fn run(mut self) -> Result<()> {
        let stop = self.stop.clone();
        tokio::select! {
            // A claim that is under way when the stop comes is not torn apart: its rows are given back.
            biased;
            ended = self.until_stopped() => ended,
            () = stop_and_linger(&stop) => Ok(()),
        }
    }

    async fn until_stopped(&mut self) -> Result<()> {
        let mut pause = FIRST_PAUSE;
        while !self.stop.is_cancelled() {
            if *self.is_down.borrow_and_update() {
                if self.once {
                    return Ok(());
                }
                self.wait_for_broker().await;
                continue;
            }
            // Room first: what is claimed ahead of time only ages.
            let Ok(room) = self.claimed.reserve().await else {
                return Ok(());
            };
            if *self.is_down.borrow() || self.stop.is_cancelled() {
                continue;
            }
            let asked_at = Instant::now();
            let claim = match self
                .outbox
                .claim(self.settings.batch_size, self.settings.stale_timeout)
                .await
            {
                Ok(claim) => claim,
                Err(error) if self.once => return Err(error),
                Err(error) => {
                    drop(room);
                    tracing::warn!(event = "celery_claim_failed", %error, "cannot claim tasks; will retry");
                    pause = self.rest((pause * 2).min(LONGEST_PAUSE)).await;
                    continue;
                }
            };
            touch(self.settings.liveness_file.as_deref());
            let found = claim.rows.len();
            if found > 0 {
                self.hand.claimed(found);
                // Here, because whoever publishes has the broker wait.
                let outgoing = claim.rows.iter().map(Row::outgoing).collect();
                room.send(Claimed {
                    claim,
                    outgoing,
                    asked_at,
                });
            } else {
                drop(room);
            }
            let full = found >= self.settings.batch_size as usize;
            match (found, full) {
                (0, _) if self.once => return Ok(()),
                (_, true) => pause = FIRST_PAUSE,
                (0, false) => pause = self.rest((pause * 2).min(self.settings.idle_time)).await,
                (_, false) => pause = self.rest(FIRST_PAUSE.min(self.settings.idle_time)).await,
            }
        }
        Ok(())
    }

    /// Returns how long it was.
    async fn rest(&self, pause: Duration) -> Duration {
        tokio::select! {
            () = sleep(pause) => {}
            () = self.stop.cancelled() => {}
        }
        pause
    }

    async fn wait_for_broker(&mut self) {
        touch(self.settings.liveness_file.as_deref());
        tokio::select! {
            _ = self.is_down.changed() => {}
            () = sleep(LONGEST_PAUSE) => {}
            () = self.stop.cancelled() => {}
        }
    }
}

/// A database that hangs must not keep a relay from stopping.
async fn stop_and_linger(stop: &CancellationToken) {
    stop.cancelled().await;
    sleep(LONGEST_PAUSE).await;
}
