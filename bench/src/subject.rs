//! The measured system: a new schema, and relays with a sink that only counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use async_trait::async_trait;
use sendoff::emit::Names;
use sendoff::store::{MigrateStore, RelayStore};
use sendoff::{Outcome, Outgoing, Sink, Waker};
use sendoff_relay::{Observer, Relay, Settings, SettledBatch};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};
use tokio_util::sync::CancellationToken;

/// The server that the measurements run against.
pub(crate) fn url() -> Result<String> {
    std::env::var("SENDOFF_TEST_POSTGRES_URL")
        .context("SENDOFF_TEST_POSTGRES_URL is not set: run `cargo xtask bench GROUP`")
}

pub(crate) async fn connect() -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(&url()?, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Confirms everything immediately, and counts.
#[derive(Default)]
pub(crate) struct Counting {
    pub(crate) count: AtomicU64,
    pub(crate) settled: AtomicU64,
}

/// Counts settled rows. Counting the rows left in the table would slow down the measurement.
impl Observer for Counting {
    fn settled(&self, settled: &SettledBatch) {
        self.settled.fetch_add(settled.rows as u64, Ordering::Relaxed);
    }
}

#[async_trait]
impl Sink for Counting {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        self.count.fetch_add(batch.len() as u64, Ordering::Relaxed);
        vec![Outcome::Delivered; batch.len()]
    }
}

/// A separate schema with an outbox.
pub(crate) struct Schema {
    pub(crate) names: Names,
    pub(crate) client: Client,
}

impl Schema {
    pub(crate) async fn fresh(name: &str) -> Result<Self> {
        let client = connect().await?;
        client
            .batch_execute(&format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}"))
            .await?;
        let schema = Self {
            names: Names::new(Some(name), Names::PREFIX)?,
            client,
        };
        schema.store(false)?.migrate().await?;
        Ok(schema)
    }

    /// A schema that another process has created.
    pub(crate) async fn existing(name: &str) -> Result<Self> {
        Ok(Self {
            names: Names::new(Some(name), Names::PREFIX)?,
            client: connect().await?,
        })
    }

    pub(crate) fn config(&self, listen: bool) -> Result<PostgresConfig> {
        let mut config = PostgresConfig::new(url()?);
        config.names = self.names.clone();
        config.listen = listen;
        Ok(config)
    }

    pub(crate) fn store(&self, listen: bool) -> Result<PostgresStore> {
        Ok(PostgresStore::new(self.config(listen)?)?)
    }

    /// The SQL that puts `count` messages with a payload of 256 bytes into the ready table.
    pub(crate) fn fill_sql(&self, count: u64) -> String {
        self.names.render(&format!(
            "INSERT INTO outbox_message (id, topic, payload)
             SELECT gen_random_uuid(), 'bench.topic', decode(repeat(md5(n::text), 16), 'hex')
             FROM generate_series(1, {count}) AS n"
        ))
    }

    /// Rows in the ready table.
    pub(crate) async fn ready(&self) -> Result<i64> {
        let sql = self.names.render("SELECT count(*) FROM outbox_message");
        Ok(self.client.query_one(&sql, &[]).await?.get(0))
    }
}

/// Running relays.
pub(crate) struct Relays {
    pub(crate) sink: Arc<Counting>,
    pub(crate) wakers: Vec<Waker>,
    stop: CancellationToken,
    running: Vec<JoinHandle<sendoff::Result<sendoff_relay::RunReport>>>,
}

impl Relays {
    /// Starts relays on these stores and waits until they have shared the lanes.
    pub(crate) async fn start(stores: Vec<Arc<dyn RelayStore>>, settings: Settings) -> Result<Self> {
        let sink = Arc::new(Counting::default());
        let relays = Self::with_sink(stores, settings, sink.clone(), sink)?;
        tokio::time::sleep(Duration::from_millis(2500)).await;
        Ok(relays)
    }

    /// The same with another sink; `counts` counts the settled rows.
    pub(crate) fn with_sink(
        stores: Vec<Arc<dyn RelayStore>>,
        settings: Settings,
        sink: Arc<dyn Sink>,
        counts: Arc<Counting>,
    ) -> Result<Self> {
        let stop = CancellationToken::new();
        let (mut wakers, mut running) = (Vec::new(), Vec::new());
        for store in stores {
            let waker = Waker::new();
            let relay = Relay::builder(store)
                .sink("nowhere", sink.clone())
                .route("*".parse()?, ["nowhere"])
                .settings(settings.clone())
                .observer(counts.clone())
                .waker(waker.clone())
                .build()?;
            wakers.push(waker);
            running.push(tokio::spawn(relay.run(stop.clone())));
        }
        Ok(Self {
            sink: counts,
            wakers,
            stop,
            running,
        })
    }

    pub(crate) fn wake(&self) {
        for waker in &self.wakers {
            waker.wake();
        }
    }

    /// Waits until the sink has this many messages.
    pub(crate) async fn wait_for(&self, count: u64) -> Result<()> {
        reach(&self.sink.count, count).await
    }

    /// Waits until this many rows are settled.
    pub(crate) async fn wait_until_settled(&self, count: u64) -> Result<()> {
        reach(&self.sink.settled, count).await
    }

    /// Ends them like a crash: nothing is released.
    pub(crate) fn kill(self) {
        for running in self.running {
            running.abort();
        }
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.stop.cancel();
        for running in self.running {
            running.await??;
        }
        Ok(())
    }
}

/// The limit is two minutes, plus one for every million.
async fn reach(counter: &AtomicU64, count: u64) -> Result<()> {
    let (begun, limit) = (Instant::now(), Duration::from_secs(120 + count / 1_000_000 * 60));
    while counter.load(Ordering::Relaxed) < count {
        anyhow::ensure!(begun.elapsed() < limit, "the relays did not finish within {limit:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
