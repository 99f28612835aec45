//! Group `backlog`: ten million pending messages.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sendoff::emit::Names;
use sendoff_relay::Settings;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::figure::{Figures, Goal, median};
use crate::plot;
use crate::subject::{Relays, Schema};

const NAME: &str = "bench_backlog";
const FRESH_NAME: &str = "bench_fresh";
const PENDING: u64 = 10_000_000;
const FRESH: u64 = 100_000;
const MILLION: u64 = 1_000_000;
/// How many of the ten million are drained: the rate is for a table that is still full.
const DRAINED: u64 = 1_000_000;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let pending = Schema::fresh(NAME).await?;
    let (mut fresh, mut rates, mut ratios, mut peaks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let million = refill(&pending, MILLION).await?.drain(MILLION / 2).await?.rate;
    figures.progress(&format!("a million pending: {million:.0}/s; filling ten million"));
    for round in 1..=figures.rounds.min(3) {
        let few = Schema::fresh(FRESH_NAME).await?;
        let few = refill(&few, FRESH).await?.drain(FRESH).await?;
        let many = refill(&pending, PENDING).await?.drain(DRAINED).await?;
        figures.progress(&format!(
            "round {round}: {:.0}/s, peak {:.0} MiB; with ten million pending {:.0}/s, peak {:.0} MiB",
            few.rate, few.peak_mib, many.rate, many.peak_mib
        ));
        ratios.push(many.rate / few.rate);
        peaks.push(many.peak_mib);
        fresh.push(few.rate);
        rates.push(many.rate);
    }
    let points = [(FRESH, median(&fresh)), (MILLION, million), (PENDING, median(&rates))];
    figures.draw(|folder| plot::drain_rate(folder, &points))?;
    figures.report("backlog_10m_vs_fresh", "ratio", Goal::AtLeast(0.8), &ratios);
    figures.report("relay_rss_mib", "MiB", Goal::AtMost(100.0), &peaks);
    Ok(())
}

/// A table with a backlog in it.
struct Filled<'a>(&'a Schema);

/// The result of a drain.
struct Drained {
    rate: f64,
    peak_mib: f64,
}

/// Fills the table up to this many messages.
async fn refill(schema: &Schema, pending: u64) -> Result<Filled<'_>> {
    let mut missing = pending.saturating_sub(u64::try_from(schema.ready().await?)?);
    while missing > 0 {
        let some = missing.min(MILLION);
        schema.client.batch_execute(&schema.fill_sql(some)).await?;
        missing -= some;
    }
    // One by one: statements that are sent together are a transaction, which does not allow VACUUM.
    for sql in ["VACUUM (ANALYZE) outbox_message", "CHECKPOINT"] {
        schema.client.batch_execute(&schema.names.render(sql)).await?;
    }
    Ok(Filled(schema))
}

impl Filled<'_> {
    /// Drains some of it in a separate process.
    async fn drain(self, count: u64) -> Result<Drained> {
        let schema = self.0.names.schema().context("the tables are in a schema")?;
        let mut child = tokio::process::Command::new(std::env::current_exe()?)
            .arg("drain")
            .env("SENDOFF_BENCH_DRAIN", count.to_string())
            .env("SENDOFF_BENCH_SCHEMA", schema)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().context("no output")?;
        let line = BufReader::new(stdout)
            .lines()
            .next_line()
            .await?
            .context("the draining process printed no rate")?;
        child.wait().await?;
        let mut words = line.split_whitespace();
        let mut number = || anyhow::Ok(words.next().context("a number is missing")?.parse::<f64>()?);
        Ok(Drained {
            rate: number()?,
            peak_mib: number()?,
        })
    }
}

/// The draining process. Prints its rate and its peak memory in MiB.
pub(crate) async fn drain() -> Result<()> {
    let count: u64 = std::env::var("SENDOFF_BENCH_DRAIN")?.parse()?;
    let client = crate::subject::connect().await?;
    let schema = Schema {
        names: Names::new(Some(&std::env::var("SENDOFF_BENCH_SCHEMA")?), Names::PREFIX)?,
        client,
    };
    let sink = Arc::new(crate::subject::Counting::default());
    let stores: Vec<Arc<dyn sendoff::store::RelayStore>> =
        vec![Arc::new(schema.store(false)?), Arc::new(schema.store(false)?)];
    let relays = Relays::with_sink(stores, Settings::default(), sink.clone(), sink.clone())?;
    // Measure from the first message on, so that the rate does not include taking leases.
    while sink.count.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (begun, before) = (Instant::now(), sink.count.load(Ordering::Relaxed));
    relays.wait_for(count).await?;
    let rate = (count - before) as f64 / begun.elapsed().as_secs_f64();
    println!("{rate} {}", peak_memory_mib()?);
    // Without a clean stop the next relay would see a crash, and search for the message that caused it.
    relays.stop().await
}

fn peak_memory_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
