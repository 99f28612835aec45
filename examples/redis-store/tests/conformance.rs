//! The store conformance suite on Redis. Every case has its own server.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::{Error, ErrorKind, Result};
use sendoff_example_redis_store::RedisStore;
use sendoff_testkit::servers::Redis;
use sendoff_testkit::store_suite::{Capabilities, Database, Setup, StoreHarness, Subject, run};

fn main() -> ExitCode {
    run([("redis", OnRedis)])
}

struct OnRedis;

#[async_trait]
impl StoreHarness for OnRedis {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sql: false,
            migrations: false,
            concurrent_transactions: true,
            jobs: false,
            figures: false,
        }
    }

    async fn fresh(&self, setup: Setup) -> Result<Subject> {
        let server = Arc::new(Redis::start().await);
        Outbox { server, setup }.open().await
    }
}

#[derive(Clone)]
struct Outbox {
    server: Arc<Redis>,
    setup: Setup,
}

#[async_trait]
impl Database for Outbox {
    async fn open(&self) -> Result<Subject> {
        let mut store = RedisStore::new(&self.server.url(), "outbox")?
            .retention(self.setup.keep_delivered.then_some(Duration::from_secs(86_400)))
            .dead_retention(self.setup.dead_retention);
        if let Some(window) = self.setup.dedup_window {
            store = store.dedup_window(window);
        }
        Ok(Subject::new(store, self.clone()))
    }

    async fn set_back(&self) -> Result<()> {
        let failed = |error: redis::RedisError| Error::new(ErrorKind::Backend, "Redis failed").with_source(error);
        let client = redis::Client::open(self.server.url()).map_err(failed)?;
        let mut connection = client.get_multiplexed_async_connection().await.map_err(failed)?;
        let rooms = (0..80).flat_map(|lane| ["ready", "ready-row"].map(|table| format!("{{outbox}}:{table}:{lane}")));
        let mut delete = redis::cmd("DEL");
        delete.arg("{outbox}:seq").arg(rooms.collect::<Vec<_>>());
        delete.query_async(&mut connection).await.map_err(failed)
    }
}
