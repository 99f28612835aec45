//! The same drain on SQLite.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::Connection;
use sendoff::store::{MigrateStore, RelayStore};
use sendoff_relay::Settings;
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};

use crate::figure::{Figures, Goal};
use crate::subject::Relays;

pub(crate) const BACKLOG: u64 = 100_000;

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let name = "sqlite_drain_vs_row_lease";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let mut ratios = Vec::new();
    for round in 1..=figures.rounds {
        let ours = lanes().await?;
        let lease = tokio::task::spawn_blocking(row_lease).await??;
        figures.progress(&format!(
            "sqlite, round {round}: lanes {ours:.0}/s, row lease {lease:.0}/s"
        ));
        ratios.push(ours / lease);
    }
    figures.report(name, "ratio", Goal::AtLeast(2.0), &ratios);
    Ok(())
}

fn open(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
    Ok(connection)
}

const FILL: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)";

/// Messages per second with two relays, as on PostgreSQL.
pub(crate) async fn lanes() -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("outbox.db");
    SqliteStore::new(SqliteConfig::new(&path))?.migrate().await?;
    let one: Arc<dyn RelayStore> = Arc::new(SqliteStore::new(SqliteConfig::new(&path))?);
    let two: Arc<dyn RelayStore> = Arc::new(SqliteStore::new(SqliteConfig::new(&path))?);
    let relays = Relays::start(vec![one, two], Settings::default()).await?;
    let connection = open(&path)?;
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         INSERT INTO outbox_message (id, topic, payload)
         {FILL} SELECT lower(printf('%s-%s-7%s-8%s-%s', hex(randomblob(4)), hex(randomblob(2)), substr(hex(randomblob(2)), 2),
             substr(hex(randomblob(2)), 2), hex(randomblob(6)))), 'bench.topic', randomblob(256) FROM n"
    ))?;
    connection.execute_batch("COMMIT")?;
    let begun = Instant::now();
    relays.wake();
    relays.wait_until_settled(BACKLOG).await?;
    let rate = BACKLOG as f64 / begun.elapsed().as_secs_f64();
    let left: bool = connection.query_row("SELECT EXISTS (SELECT 1 FROM outbox_message)", [], |row| row.get(0))?;
    anyhow::ensure!(!left, "rows are left that were reported as settled");
    relays.stop().await?;
    Ok(rate)
}

fn row_lease() -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("lease.db");
    let connection = open(&path)?;
    connection.execute_batch(include_str!("../../sql/row_lease_sqlite_table.sql"))?;
    connection.execute_batch(&format!(
        "INSERT INTO bench_lease (message_id, topic, payload, created_at)
         {FILL} SELECT hex(randomblob(16)), 'bench.topic', randomblob(256), 0 FROM n"
    ))?;
    let begun = Instant::now();
    let taken: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = ["one", "two"]
            .iter()
            .map(|owner| scope.spawn(|| work(&path, owner)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| anyhow::bail!("a worker panicked")))
            .sum::<Result<u64>>()
    })?;
    anyhow::ensure!(taken == BACKLOG, "the baseline drained {taken}");
    Ok(BACKLOG as f64 / begun.elapsed().as_secs_f64())
}

fn work(path: &Path, owner: &str) -> Result<u64> {
    let connection = open(path)?;
    let mut claim = connection.prepare(include_str!("../../sql/row_lease_sqlite_claim.sql"))?;
    let mut settle = connection.prepare(include_str!("../../sql/row_lease_sqlite_settle.sql"))?;
    let mut taken = 0;
    loop {
        let ids: Vec<i64> = claim
            .query_map([owner], |row| {
                let _payload: Vec<u8> = row.get(2)?;
                row.get(0)
            })?
            .collect::<rusqlite::Result<_>>()?;
        if ids.is_empty() {
            return Ok(taken);
        }
        taken += ids.len() as u64;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for id in ids {
            settle.execute(rusqlite::params![id, owner])?;
        }
        connection.execute_batch("COMMIT")?;
    }
}
