//! Redis: entries of a stream.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use sendoff::Sink;
use sendoff_sink_redis::{RedisConfig, RedisSink};
use sendoff_testkit::servers::Redis as Server;

use super::{Broker, batches, compare, fields};
use crate::figure::Figures;

const STREAM: &str = "bench.topic";

struct Redis {
    url: String,
    connection: MultiplexedConnection,
    _server: Server,
}

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let server = Server::start().await;
    let url = server.url();
    // On a busy machine the result is a slow figure, not an error.
    let patient = AsyncConnectionConfig::new().set_response_timeout(None);
    let connection = redis::Client::open(url.as_str())?
        .get_multiplexed_async_connection_with_config(&patient)
        .await?;
    let broker = Redis {
        url,
        connection,
        _server: server,
    };
    compare(figures, &broker, "redis_vs_limit", "redis_cpu_us").await
}

#[async_trait]
impl Broker for Redis {
    const NAME: &'static str = "Redis";

    async fn empty(&self) -> Result<()> {
        Ok(redis::cmd("DEL")
            .arg(STREAM)
            .exec_async(&mut self.connection.clone())
            .await?)
    }

    async fn count(&self) -> Result<u64> {
        Ok(redis::cmd("XLEN")
            .arg(STREAM)
            .query_async(&mut self.connection.clone())
            .await?)
    }

    fn sink(&self) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(RedisSink::new(RedisConfig::new(&self.url)?)?))
    }

    /// All publishers share one connection, as the batches of the sink do.
    async fn publish_bare(&self, count: u64) -> Result<()> {
        let mut connection = self.connection.clone();
        for batch in batches(count) {
            let mut pipeline = redis::pipe();
            for _ in 0..batch {
                let mut entry = redis::cmd("XADD");
                entry.arg(STREAM).arg("*");
                for (name, value) in fields() {
                    entry.arg(name.trim_start_matches("sendoff-")).arg(value);
                }
                entry
                    .arg("content_type")
                    .arg("application/json")
                    .arg("payload")
                    .arg(&[7_u8; 256][..]);
                pipeline.add_command(entry);
            }
            let ids: Vec<String> = pipeline.query_async(&mut connection).await?;
            anyhow::ensure!(ids.len() == batch, "Redis answered {} of {batch}", ids.len());
        }
        Ok(())
    }
}
