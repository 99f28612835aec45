//! How soon relays are fast again after all of them were killed several times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use sendoff::store::RelayStore;
use sendoff::{Outcome, Outgoing, Sink};
use sendoff_relay::Settings;

use crate::core::drain::{BACKLOG, lanes};
use crate::figure::{Figures, Goal};
use crate::subject::{Counting, Relays, Schema};

/// How often all relays are killed.
const KILLS: usize = 5;
/// How soon after the last kill the drain must be fast again.
const RECOVERY: Duration = Duration::from_secs(15);

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let name = "after_crash_drain_vs_normal";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let mut ratios = Vec::new();
    // More than a minute each.
    for round in 1..=figures.rounds.min(3) {
        let normal = lanes().await?;
        let (after, early) = after_crashes().await?;
        figures.progress(&format!(
            "limits, round {round}: normal {normal:.0}/s, after {KILLS} kills {after:.0}/s, {early} delivered in the first {RECOVERY:?}"
        ));
        ratios.push(after / normal);
    }
    figures.report(name, "ratio", Goal::AtLeast(0.5), &ratios);
    Ok(())
}

/// Does not answer while it is stuck, so that relays are killed with messages in flight.
struct Stuck {
    stuck: AtomicBool,
    counting: Arc<Counting>,
}

#[async_trait]
impl Sink for Stuck {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        if self.stuck.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.counting.publish(batch).await
    }
}

/// Messages per second, measured from [`RECOVERY`] after the last kill, for the old backlog and a new one of the same
/// size; and how many messages were delivered before that.
async fn after_crashes() -> Result<(f64, u64)> {
    let schema = Schema::fresh("bench_crash").await?;
    schema.client.batch_execute(&schema.fill_sql(BACKLOG)).await?;
    let counting = Arc::new(Counting::default());
    let sink = Arc::new(Stuck {
        stuck: true.into(),
        counting: counting.clone(),
    });
    let start = || -> Result<Relays> {
        let stores: Vec<Arc<dyn RelayStore>> = vec![Arc::new(schema.store(false)?), Arc::new(schema.store(false)?)];
        Relays::with_sink(stores, Settings::default(), sink.clone(), counting.clone())
    };
    let held = schema
        .names
        .render("SELECT count(*) FROM outbox_lane WHERE owner IS NOT NULL AND owner <> ALL ($1)");
    let mut gone: Vec<sendoff::Uuid> = Vec::new();
    for _ in 0..KILLS {
        let relays = start()?;
        let begun = Instant::now();
        while schema.client.query_one(&held, &[&gone]).await?.get::<_, i64>(0) < 80 {
            anyhow::ensure!(
                begun.elapsed() < Duration::from_secs(60),
                "no relay took the lanes over within 60 s"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Long enough to read messages and hand them to the sink.
        tokio::time::sleep(Duration::from_millis(500)).await;
        relays.kill();
        let owners = schema
            .names
            .render("SELECT DISTINCT owner FROM outbox_lane WHERE owner IS NOT NULL");
        gone = schema
            .client
            .query(&owners, &[])
            .await?
            .iter()
            .map(|row| row.get(0))
            .collect();
    }
    sink.stuck.store(false, Ordering::Relaxed);
    let killed = Instant::now();
    let relays = start()?;
    tokio::time::sleep(RECOVERY.saturating_sub(killed.elapsed())).await;
    let early = counting.settled.load(Ordering::Relaxed);
    schema.client.batch_execute(&schema.fill_sql(BACKLOG)).await?;
    // The clock starts when the backlog is committed, as for the normal drain.
    let (begun, before) = (Instant::now(), counting.settled.load(Ordering::Relaxed));
    relays.wake();
    relays.wait_until_settled(2 * BACKLOG).await?;
    let rate = (2 * BACKLOG - before) as f64 / begun.elapsed().as_secs_f64();
    relays.stop().await?;
    Ok((rate, early))
}
