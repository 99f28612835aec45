//! Large rows: the memory and the speed of relays that drain them.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::TryStreamExt as _;
use sendoff_relay::Settings;
use tokio::process::{Child, Command};

use crate::figure::{Figures, Goal};
use crate::subject::{Relays, Schema};

/// Rows of each kind.
const ROWS: usize = 2000;
/// `VmHWM` is in KiB.
const MIB: f64 = 1024.0;

/// The schema that the relays of [`drain`] read.
const SCHEMA: &str = "bench_large";

/// A kind of row: the size of its payload, and whether its headers have the largest allowed size.
#[derive(Clone, Copy)]
struct Kind {
    bytes: usize,
    headers: bool,
}

const KINDS: [Kind; 2] = [
    Kind {
        bytes: 5_000_000,
        headers: false,
    },
    Kind {
        bytes: 1_000_000,
        headers: true,
    },
];

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let (memory, speed) = ("large_rows_peak_rss_mib", "large_rows_vs_bare_read");
    if !figures.wants(&[memory, speed]) {
        return Ok(());
    }
    let (mut peaks, mut ratios) = (Vec::new(), Vec::new());
    // Several minutes each.
    for round in 1..=figures.rounds.min(2) {
        let schema = Schema::fresh(SCHEMA).await?;
        let (mut bare, mut drained) = (Duration::ZERO, Duration::ZERO);
        let mut peak: f64 = 0.0;
        for kind in KINDS {
            fill(&schema, kind).await?;
            bare += copy(&schema).await?;
            let mut relays = [relay()?, relay()?];
            let begun = Instant::now();
            while schema.ready().await? > 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                anyhow::ensure!(
                    begun.elapsed() < Duration::from_secs(1200),
                    "the drain did not finish within 20 minutes"
                );
                for relay in &mut relays {
                    anyhow::ensure!(relay.try_wait()?.is_none(), "a relay ended by itself");
                }
            }
            drained += begun.elapsed();
            let mut both = 0.0;
            for relay in &mut relays {
                both += peak_rss(relay)?;
                relay.kill().await?;
            }
            peak = peak.max(both);
            figures.progress(&format!(
                "large rows of {} bytes, round {round}: {both:.0} MiB in two relays",
                kind.bytes
            ));
        }
        figures.progress(&format!(
            "large rows, round {round}: bare {bare:.1?}, drained in {drained:.1?}"
        ));
        peaks.push(peak);
        ratios.push(bare.as_secs_f64() / drained.as_secs_f64());
    }
    figures.report(memory, "MiB", Goal::AtMost(256.0), &peaks);
    figures.report(speed, "ratio", Goal::AtLeast(0.5), &ratios);
    Ok(())
}

/// Inserts rows that do not compress, 20 per transaction.
async fn fill(schema: &Schema, kind: Kind) -> Result<()> {
    let headers = if kind.headers {
        "(SELECT jsonb_object_agg('header-' || h, repeat('v', 230)) FROM generate_series(1, 250) AS h)"
    } else {
        "NULL"
    };
    let source = format!(
        "DROP TABLE IF EXISTS outbox_source;
         CREATE UNLOGGED TABLE outbox_source (payload bytea);
         ALTER TABLE outbox_source ALTER payload SET STORAGE EXTERNAL;
         ALTER TABLE outbox_message ALTER payload SET STORAGE EXTERNAL;
         INSERT INTO outbox_source
         SELECT string_agg(decode(md5(n::text), 'hex'), '') FROM generate_series(1, {}) AS n",
        kind.bytes / 16
    );
    schema.client.batch_execute(&schema.names.render(&source)).await?;
    let insert = format!(
        "INSERT INTO outbox_message (topic, payload, headers)
         SELECT 'bench.topic', payload, {headers} FROM outbox_source CROSS JOIN generate_series(1, 20)"
    );
    let insert = schema.names.render(&insert);
    for _ in 0..ROWS / 20 {
        schema.client.batch_execute(&insert).await?;
    }
    Ok(())
}

/// How long it takes to read the same rows as one stream of bytes.
async fn copy(schema: &Schema) -> Result<Duration> {
    let begun = Instant::now();
    let columns = "id, lane, seq, topic, payload, headers, key, created_at";
    let copy = format!("COPY (SELECT {columns} FROM outbox_message) TO STDOUT (FORMAT binary)");
    let rows = schema.client.copy_out(&schema.names.render(&copy)).await?;
    let bytes = rows
        .try_fold(0, |sum, piece| async move { Ok(sum + piece.len()) })
        .await?;
    anyhow::ensure!(bytes > 0, "nothing was copied");
    Ok(begun.elapsed())
}

fn relay() -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("large-drain").stdout(Stdio::null()).kill_on_drop(true);
    Ok(command.spawn()?)
}

/// The peak memory of a relay.
fn peak_rss(relay: &Child) -> Result<f64> {
    let pid = relay.id().context("the relay has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.context("no VmHWM")?.trim().trim_end_matches(" kB");
    Ok(kib.parse::<f64>()? / MIB)
}

/// Runs a relay until the process is killed.
pub(crate) async fn drain() -> Result<()> {
    let schema = Schema::existing(SCHEMA).await?;
    let _relays = Relays::start(vec![std::sync::Arc::new(schema.store(true)?)], Settings::default()).await?;
    std::future::pending().await
}
