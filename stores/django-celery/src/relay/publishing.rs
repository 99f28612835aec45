//! Publishes claims, and checks whether the broker is up.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use sendoff::Sink;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::hand::Hand;
use super::publish::{Published, publish};
use super::quarantine::QuarantinedRows;
use super::{Claimed, Settings, Settling};
use crate::{Claim, Settlement, Stamp};

/// The first pause before a broker that is down is looked at again; doubles up to the cooldown.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// How often a sign of life is given.
const BEAT: Duration = Duration::from_millis(250);

pub(super) struct Publishing {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) settings: Arc<Settings>,
    pub(super) claims: mpsc::Receiver<Claimed>,
    pub(super) hand: Arc<Hand>,
    pub(super) settled: mpsc::Sender<Settling>,
    pub(super) down: watch::Sender<bool>,
    pub(super) stop: CancellationToken,
}

/// A broker that is down.
struct Down {
    look_at: Instant,
    pause: Duration,
}

type UnderWay = FuturesUnordered<BoxFuture<'static, (Stamp, Published)>>;

impl Publishing {
    pub(super) async fn run(mut self) {
        let quarantined = Arc::new(QuarantinedRows::default());
        let mut under_way = UnderWay::new();
        let mut down: Option<Down> = None;
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.stop.clone();
        let out_of_time = async {
            stop.cancelled().await;
            sleep(self.settings.shutdown_timeout).await;
        };
        tokio::pin!(out_of_time);
        let (mut stopping, mut closed) = (false, false);
        while !(closed && under_way.is_empty()) {
            // What comes while it stops is only given back, so it needs no room.
            let receives = !closed && (stopping || under_way.len() < self.settings.publish_concurrency);
            tokio::select! {
                biased;
                Some((stamp, published)) = under_way.next() => {
                    let Published { settlement, outage } = published;
                    match outage {
                        Some(reason) => self.note_down(&mut down, &reason),
                        None if !settlement.sent.is_empty() => self.note_up(&mut down),
                        None => {}
                    }
                    self.settle(stamp, settlement).await;
                }
                _ = beats.tick() => self.beat(),
                () = stop.cancelled(), if !stopping => stopping = true,
                claimed = self.claims.recv(), if receives => {
                    let Some(claimed) = claimed else {
                        closed = true;
                        continue;
                    };
                    let Claimed { claim, outgoing, asked_at } = claimed;
                    if stopping || down.is_some() || self.is_too_old(asked_at) {
                        self.release(claim).await;
                        continue;
                    }
                    let (sink, settings) = (Arc::clone(&self.sink), Arc::clone(&self.settings));
                    let quarantined = Arc::clone(&quarantined);
                    under_way.push(Box::pin(async move {
                        let published = publish(&claim, outgoing, sink.as_ref(), &settings, &quarantined).await;
                        (claim.stamp, published)
                    }));
                }
                () = look(&down) => self.look(&mut down).await,
                () = &mut out_of_time => break,
            }
        }
        if !under_way.is_empty() {
            // It may or may not arrive, so it is left to the stale timeout.
            tracing::warn!(
                event = "celery_stop",
                batches = under_way.len(),
                "relay stopped before the broker confirmed all tasks; unconfirmed tasks are sent again"
            );
        }
        self.claims.close();
        while let Some(Claimed { claim, .. }) = self.claims.recv().await {
            self.release(claim).await;
        }
    }

    async fn release(&self, claim: Claim) {
        let released = claim.rows.iter().map(|row| row.id).collect();
        let settlement = Settlement {
            released,
            ..Settlement::default()
        };
        self.settle(claim.stamp, settlement).await;
    }

    async fn settle(&self, stamp: Stamp, settlement: Settlement) {
        let settling = Settling {
            decided_at: Instant::now(),
            stamp,
            settlement,
        };
        // It ends only with its senders.
        let _ = self.beating(self.settled.send(settling)).await;
    }

    fn beat(&self) {
        self.hand.beat(*self.down.borrow(), self.stop.is_cancelled());
    }

    /// Waits, and gives signs of life: it is not this relay that stands still.
    async fn beating<T>(&self, waiting: impl Future<Output = T>) -> T {
        tokio::pin!(waiting);
        loop {
            tokio::select! {
                biased;
                done = &mut waiting => return done,
                () = sleep(BEAT) => self.beat(),
            }
        }
    }

    /// Whether somebody else may take these rows over before the broker has answered for them.
    fn is_too_old(&self, asked_at: Instant) -> bool {
        let limits = self.sink.limits();
        let limit = limits.timeout.unwrap_or_default().max(self.settings.send_timeout);
        asked_at.elapsed() + limit >= self.settings.stale_timeout
    }

    fn note_down(&self, down: &mut Option<Down>, reason: &str) {
        if down.is_none() {
            tracing::warn!(
                event = "broker_down",
                reason,
                "broker is down; no tasks are claimed until it is up again"
            );
            let pause = FIRST_PAUSE.min(self.settings.broker_outage_cooldown);
            *down = Some(Down {
                look_at: Instant::now() + pause,
                pause,
            });
            self.down.send_replace(true);
        }
    }

    fn note_up(&self, down: &mut Option<Down>) {
        if down.take().is_some() {
            tracing::info!(event = "broker_up", "broker is up again");
            self.down.send_replace(false);
        }
    }

    async fn look(&self, down: &mut Option<Down>) {
        let checked = self
            .beating(timeout(self.settings.send_timeout, self.sink.check()))
            .await;
        if let Ok(Ok(())) = checked {
            return self.note_up(down);
        }
        if let Some(down) = down {
            down.pause = (down.pause * 2).min(self.settings.broker_outage_cooldown);
            down.look_at = Instant::now() + down.pause;
        }
    }
}

async fn look(down: &Option<Down>) {
    match down {
        Some(down) => sleep_until(down.look_at).await,
        None => std::future::pending().await,
    }
}
