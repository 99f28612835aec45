//! Publishing, checking, closing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::sink::Limits;
use sendoff::{Error, Outcome, Outgoing, Result, Sink};
use sendoff_wire::{Connections, Fate, Parts};

use crate::connect::Connector;
use crate::{MqttConfig, batch, error};

/// How many connections in a row may fail before the sink is down.
const MOST_TRIES: usize = 3;

/// Publishes messages to an MQTT broker.
pub struct MqttSink {
    config: Arc<MqttConfig>,
    connections: Connections<Connector>,
}

impl MqttSink {
    /// Creates the sink. It connects when the first batch is published, or when [`Sink::check`] is called.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when a setting cannot be used.
    pub fn new(config: MqttConfig) -> Result<Self> {
        config.validate()?;
        let config = Arc::new(config);
        let connections = Connections::new(Connector(Arc::clone(&config)), config.connect_timeout);
        Ok(Self { config, connections })
    }

    /// Sends a part of a batch on the open connection, or on a new one. No other batch uses it meanwhile.
    async fn send(&self, messages: &[&Arc<Outgoing>]) -> Vec<Fate> {
        for _ in 0..MOST_TRIES {
            let link = match self.connections.get().await {
                Ok(link) => link,
                Err(refusal) => return vec![Fate::Settled(refusal.outcome()); messages.len()],
            };
            // A connection that cannot be taken has sent nothing, so another one can be tried.
            if let Some(used) = link.take().await {
                return batch::publish(used, &self.config, messages).await;
            }
        }
        vec![Fate::Settled(error::unsteady(&self.config.url)); messages.len()]
    }
}

#[async_trait]
impl Sink for MqttSink {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let mut parts = Parts::new(batch.len());
        while let Some(part) = parts.next() {
            let messages: Vec<&Arc<Outgoing>> = part.iter().map(|place| &batch[*place]).collect();
            let fates = self.send(&messages).await;
            parts.settle(&part, fates);
        }
        parts.into_outcomes()
    }

    fn limits(&self) -> Limits {
        let config = &self.config;
        Limits {
            batch: None,
            // A batch may wait for another one that uses the connection.
            timeout: Some(config.connect_timeout + config.ack_timeout * 2 + Duration::from_secs(2)),
        }
    }

    async fn check(&self) -> Result<()> {
        let link = self.connections.get().await.map_err(Error::from)?;
        if let Some(used) = link.take().await {
            used.done();
            return Ok(());
        }
        // The idle connection was dead; a new one shows whether the broker is reachable.
        self.connections.get().await.map(drop).map_err(Error::from)
    }

    async fn close(&self) {
        if let Some(link) = self.connections.close().await {
            link.end().await;
        }
    }
}
