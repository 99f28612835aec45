//! Group `mysql`, on MariaDB or MySQL: lanes against row leases, in the same database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use sendoff::emit::Names;
use sendoff::store::{Claim, MigrateStore, RelayStore, WorkStore};
use sendoff_relay::Settings;
use sendoff_store_mysql::{MysqlConfig, MysqlStore};

use crate::conflicts::Conflicts;
use crate::figure::{Figures, Goal};
use crate::subject::Relays;

const BACKLOG: u64 = 50_000;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let names = ["mariadb_lanes_vs_row_lease", "mariadb_deadlock_errors"];
    if !figures.wants(&names) {
        return Ok(());
    }
    let conflicts = Conflicts::watch()?;
    let (mut ratios, mut errors) = (Vec::new(), Vec::new());
    for round in 1..=figures.rounds {
        let (lanes, lease) = (lanes().await?, row_lease(&conflicts).await?);
        let (surfaced, retried) = conflicts.take();
        figures.progress(&format!(
            "MariaDB, round {round}: lanes {lanes:.0}/s, row leases {lease:.0}/s; deadlocks and lock timeouts: {surfaced} \
             surfaced, {retried} retried inside the store"
        ));
        ratios.push(lanes / lease);
        errors.push(surfaced as f64);
    }
    figures.report(names[0], "ratio", Goal::AtLeast(1.3), &ratios);
    // The sum of all rounds: a median would hide an error that happened once.
    figures.report(names[1], "errors", Goal::AtMost(0.0), &[errors.iter().sum()]);
    Ok(())
}

/// Messages per second with two relays and a sink that does nothing.
async fn lanes() -> Result<f64> {
    let base = Base::fresh("bench_lanes").await?;
    let stores: Vec<Arc<dyn RelayStore>> = vec![Arc::new(base.store()?), Arc::new(base.store()?)];
    let relays = Relays::start(stores, Settings::default()).await?;
    base.fill("outbox_message").await?;
    let begun = Instant::now();
    relays.wake();
    relays.wait_until_settled(BACKLOG).await?;
    let rate = BACKLOG as f64 / begun.elapsed().as_secs_f64();
    relays.stop().await?;
    Ok(rate)
}

/// Jobs per second with two workers that claim 500 at a time and only mark them.
async fn row_lease(conflicts: &Conflicts) -> Result<f64> {
    let base = Base::fresh("bench_leases").await?;
    base.fill("outbox_job").await?;
    let begun = Instant::now();
    let worker = async |name: &'static str| {
        let store: Arc<dyn WorkStore> = Arc::new(base.store()?);
        let mut taken = 0;
        loop {
            let jobs = match store.claim_batch(name, 500, Duration::from_secs(30)).await {
                Err(error) if conflicts.saw(&error) => continue,
                claimed => claimed?,
            };
            if jobs.is_empty() {
                return anyhow::Ok(taken);
            }
            taken += jobs.iter().filter(|job| !job.payload.is_empty()).count() as u64;
            let claims: Vec<Claim> = jobs.iter().map(|job| job.claim).collect();
            let lost = loop {
                match store.mark_success(name, &claims).await {
                    Err(error) if conflicts.saw(&error) => {}
                    marked => break marked?,
                }
            };
            anyhow::ensure!(lost.is_empty(), "{} leases were lost", lost.len());
        }
    };
    let (one, two) = tokio::try_join!(worker("one"), worker("two"))?;
    anyhow::ensure!(one + two == BACKLOG, "the workers drained {one} + {two}");
    Ok(BACKLOG as f64 / begun.elapsed().as_secs_f64())
}

/// A separate database with an outbox.
struct Base {
    url: String,
    names: Names,
}

impl Base {
    async fn fresh(name: &str) -> Result<Self> {
        let url = std::env::var("SENDOFF_TEST_MYSQL_URL")
            .context("SENDOFF_TEST_MYSQL_URL is not set: run `cargo xtask bench GROUP`")?;
        let base = Self {
            url,
            names: Names::new(Some(name), Names::PREFIX)?,
        };
        let mut conn = base.connect().await?;
        conn.query_drop(format!("DROP DATABASE IF EXISTS {name}")).await?;
        conn.query_drop(format!("CREATE DATABASE {name}")).await?;
        conn.disconnect().await?;
        base.store()?.migrate().await?;
        Ok(base)
    }

    fn store(&self) -> Result<MysqlStore> {
        Ok(MysqlStore::new(MysqlConfig::new(&self.url).names(self.names.clone()))?)
    }

    async fn connect(&self) -> Result<Conn> {
        let opts = OptsBuilder::from_opts(Opts::from_url(&self.url)?).prefer_socket(false);
        Ok(Conn::new(opts).await?)
    }

    /// Inserts the backlog, with payloads of 256 bytes, into this table in one transaction.
    async fn fill(&self, table: &str) -> Result<()> {
        let sql = self.names.render(&format!(
            "INSERT INTO {table} (id, topic, payload)
             SELECT uuid(), 'bench.topic', UNHEX(REPEAT(MD5(seq), 16)) FROM seq_1_to_{BACKLOG}"
        ));
        let mut conn = self.connect().await?;
        conn.query_drop(sql).await?;
        conn.disconnect().await?;
        Ok(())
    }
}
