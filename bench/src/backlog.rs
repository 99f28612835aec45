//! Group `backlog`: ten million pending messages.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sendoff_relay::Settings;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::figure::{Figures, Goal, median};
use crate::plot;
use crate::subject::{Relays, Schema};

const PENDING: u64 = 10_000_000;
const FRESH: u64 = 100_000;
const MILLION: u64 = 1_000_000;
/// How many of the ten million are drained: the rate is that with ten million pending, not with the last of them.
const DRAINED: u64 = 1_000_000;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let mut fresh = Vec::new();
    for round in 1..=3 {
        let (rate, rss) = drain_filled(FRESH, FRESH).await?;
        figures.progress(&format!("fresh, round {round}: {rate:.0}/s, peak {rss:.0} MiB"));
        fresh.push(rate);
    }
    let (million, _) = drain_filled(MILLION, MILLION / 2).await?;
    figures.progress(&format!("a million pending: {million:.0}/s; filling ten million"));
    let (rate, rss) = drain_filled(PENDING, DRAINED).await?;
    figures.progress(&format!("ten million pending: {rate:.0}/s, peak {rss:.0} MiB"));
    let rates = [(FRESH, median(&fresh)), (MILLION, million), (PENDING, rate)];
    figures.draw(|folder| plot::drain_rate(folder, &rates))?;
    let ratios: Vec<f64> = fresh.iter().map(|fresh| rate / fresh).collect();
    figures.report("backlog_10m_vs_fresh", "ratio", Goal::AtLeast(0.8), &ratios);
    figures.report("relay_rss_mib", "MiB", Goal::AtMost(100.0), &[rss]);
    Ok(())
}

/// Fills the table, then has a process of its own drain some of it: its rate and its peak memory.
async fn drain_filled(pending: u64, drained: u64) -> Result<(f64, f64)> {
    let schema = Schema::fresh("bench_backlog").await?;
    for _ in 0..pending.div_ceil(1_000_000) {
        schema
            .client
            .batch_execute(&schema.fill_sql(pending.min(1_000_000)))
            .await?;
    }
    // One by one: statements that are sent together are a transaction, in which there is no VACUUM.
    for sql in ["VACUUM (ANALYZE) outbox_message", "CHECKPOINT"] {
        schema.client.batch_execute(&schema.names.render(sql)).await?;
    }
    let mut child = tokio::process::Command::new(std::env::current_exe()?)
        .arg("drain")
        .env("SENDOFF_BENCH_DRAIN", drained.to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().context("no output")?;
    let line = BufReader::new(stdout)
        .lines()
        .next_line()
        .await?
        .context("the draining process said nothing")?;
    child.wait().await?;
    let mut words = line.split_whitespace();
    let mut number = || anyhow::Ok(words.next().context("a number is missing")?.parse::<f64>()?);
    Ok((number()?, number()?))
}

/// The draining process: prints its rate and its peak memory in MiB.
pub(crate) async fn drain() -> Result<()> {
    let count: u64 = std::env::var("SENDOFF_BENCH_DRAIN")?.parse()?;
    let client = crate::subject::connect().await?;
    let schema = Schema {
        names: sendoff::emit::Names::new(Some("bench_backlog"), sendoff::emit::Names::PREFIX)?,
        client,
    };
    let sink = Arc::new(crate::subject::Counting::default());
    let stores: Vec<Arc<dyn sendoff::store::RelayStore>> =
        vec![Arc::new(schema.store(false)?), Arc::new(schema.store(false)?)];
    let relays = Relays::with_sink(stores, Settings::default(), sink.clone(), sink.clone())?;
    // From the first message on, so that taking leases is not part of the rate.
    while sink.count.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (begun, before) = (Instant::now(), sink.count.load(Ordering::Relaxed));
    relays.wait_for(count).await?;
    let rate = (count - before) as f64 / begun.elapsed().as_secs_f64();
    println!("{rate} {}", peak_memory_mib()?);
    std::process::exit(0);
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
