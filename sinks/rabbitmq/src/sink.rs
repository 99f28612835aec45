//! Publishing: every message is encoded just before it is sent.

use std::sync::Arc;

use async_trait::async_trait;
use sendoff::sink::Limits;
use sendoff::{Outcome, Outgoing, Result, Sink};

use crate::RabbitMqConfig;
use crate::encode::encode;
use crate::publisher::Publisher;

/// Publishes messages to RabbitMQ.
pub struct RabbitMqSink {
    config: RabbitMqConfig,
    publisher: Publisher,
}

impl RabbitMqSink {
    /// Creates the sink. It connects when the first batch is published, or when [`Sink::check`] is called.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](sendoff::ErrorKind::Invalid) when a setting or one of its files cannot be used.
    pub fn new(config: RabbitMqConfig) -> Result<Self> {
        config.validate()?;
        let publisher = Publisher::new(config.settings(), config.topology())?;
        Ok(Self { config, publisher })
    }
}

#[async_trait]
impl Sink for RabbitMqSink {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let make = |at: usize| encode(&self.config, &batch[at]).map_err(Outcome::Permanent);
        self.publisher.publish(batch.len(), make).await
    }

    fn limits(&self) -> Limits {
        self.publisher.limits()
    }

    async fn check(&self) -> Result<()> {
        let routing_key = self.config.routing_key.as_fixed().unwrap_or_default();
        let exchange = self.config.exchange.as_fixed().map(|exchange| (exchange, routing_key));
        self.publisher.check(exchange).await
    }

    async fn close(&self) {
        self.publisher.close().await;
    }
}
