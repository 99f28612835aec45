//! RabbitMQ: a durable queue behind an exchange, persistent messages, confirms, mandatory.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use futures::future::try_join_all;
use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
    QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind};
use sendoff::Sink;
use sendoff_sink_rabbitmq::{RabbitMqConfig, RabbitMqSink};
use sendoff_testkit::servers::RabbitMq as Server;

use super::{Broker, batches, compare, fields};
use crate::figure::Figures;

const EXCHANGE: &str = "sendoff-bench";
const QUEUE: &str = "sendoff-bench";

struct RabbitMq {
    url: String,
    channel: Channel,
    _connection: Connection,
    _server: Server,
}

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let server = Server::start().await;
    // The limit for the tests is low, and a broker that blocks publishers is not what is measured here.
    server.ctl(&["set_vm_memory_high_watermark", "absolute", "4GB"]).await;
    let url = server.url();
    let connection = Connection::connect(&url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let durable = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    channel
        .exchange_declare(EXCHANGE.into(), ExchangeKind::Topic, durable, FieldTable::default())
        .await?;
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(QUEUE.into(), durable, FieldTable::default())
        .await?;
    let bind = QueueBindOptions::default();
    channel
        .queue_bind(QUEUE.into(), EXCHANGE.into(), "#".into(), bind, FieldTable::default())
        .await?;
    let broker = RabbitMq {
        url,
        channel,
        _connection: connection,
        _server: server,
    };
    compare(figures, &broker, "rabbitmq_vs_limit", "rabbitmq_cpu_us").await
}

#[async_trait]
impl Broker for RabbitMq {
    const NAME: &'static str = "RabbitMQ";

    async fn empty(&self) -> Result<()> {
        self.channel
            .queue_purge(QUEUE.into(), QueuePurgeOptions::default())
            .await?;
        Ok(())
    }

    async fn count(&self) -> Result<u64> {
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = self
            .channel
            .queue_declare(QUEUE.into(), passive, FieldTable::default())
            .await?;
        Ok(queue.message_count().into())
    }

    fn sink(&self) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(RabbitMqSink::new(RabbitMqConfig::new(&self.url, EXCHANGE)?)?))
    }

    async fn publish_bare(&self, count: u64) -> Result<()> {
        let connection = Connection::connect(&self.url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let payload = [7; 256];
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        for batch in batches(count) {
            let mut confirms = Vec::with_capacity(batch);
            for _ in 0..batch {
                let mut headers = FieldTable::default();
                let fields = fields();
                let id = fields[0].1.clone();
                for (name, value) in fields {
                    headers.insert(name.into(), AMQPValue::LongString(value.into()));
                }
                let properties = BasicProperties::default()
                    .with_message_id(id.into())
                    .with_timestamp(1_769_860_800)
                    .with_content_type("application/json".into())
                    .with_type("bench.topic".into())
                    .with_app_id("sendoff".into())
                    .with_delivery_mode(2)
                    .with_headers(headers);
                let publishing =
                    channel.basic_publish(EXCHANGE.into(), "bench.topic".into(), options, &payload, properties);
                confirms.push(publishing.await?);
            }
            let confirmed = try_join_all(confirms).await?;
            let is_ack = |confirmation: &lapin::Confirmation| matches!(confirmation, lapin::Confirmation::Ack(None));
            anyhow::ensure!(confirmed.iter().all(is_ack), "RabbitMQ did not confirm all messages");
        }
        connection.close(200, "done".into()).await?;
        Ok(())
    }
}
