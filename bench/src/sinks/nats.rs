//! NATS JetStream: a stream on disk, acknowledged, deduplicated by the message's id.

use std::future::IntoFuture;
use std::sync::Arc;

use anyhow::Result;
use async_nats::HeaderMap;
use async_nats::jetstream::{self, stream};
use async_trait::async_trait;
use futures::future::try_join_all;
use sendoff::Sink;
use sendoff_sink_nats::{NatsConfig, NatsSink};
use sendoff_testkit::servers::Nats as Server;

use super::{Broker, batches, compare, fields};
use crate::figure::Figures;

const STREAM: &str = "bench";

struct Nats {
    url: String,
    context: jetstream::Context,
    _server: Server,
}

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let server = Server::start().await;
    let url = server.url();
    let client = async_nats::connect(&url).await?;
    let context = jetstream::new(client);
    let config = stream::Config {
        name: STREAM.to_owned(),
        subjects: vec!["bench.>".to_owned()],
        ..stream::Config::default()
    };
    context.create_stream(config).await?;
    let broker = Nats {
        url,
        context,
        _server: server,
    };
    compare(figures, &broker, "nats_vs_limit", "nats_cpu_us").await
}

#[async_trait]
impl Broker for Nats {
    const NAME: &'static str = "NATS";

    async fn empty(&self) -> Result<()> {
        self.context.get_stream(STREAM).await?.purge().await?;
        Ok(())
    }

    async fn count(&self) -> Result<u64> {
        Ok(self.context.get_stream(STREAM).await?.get_info().await?.state.messages)
    }

    fn sink(&self) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(NatsSink::new(NatsConfig::new(&self.url)?)?))
    }

    /// All publishers share one connection, as the batches of the sink do.
    async fn publish_bare(&self, count: u64) -> Result<()> {
        for batch in batches(count) {
            let mut acks = Vec::with_capacity(batch);
            for _ in 0..batch {
                let mut headers = HeaderMap::new();
                let fields = fields();
                headers.insert("Nats-Msg-Id", fields[0].1.as_str());
                headers.insert("Content-Type", "application/json");
                for (name, value) in &fields {
                    headers.insert(*name, value.as_str());
                }
                let publishing = self
                    .context
                    .publish_with_headers("bench.topic", headers, vec![7; 256].into());
                acks.push(publishing.await?.into_future());
            }
            try_join_all(acks).await?;
        }
        Ok(())
    }
}
