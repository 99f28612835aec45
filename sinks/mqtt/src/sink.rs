//! Publishing, checking, closing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::sink::Limits;
use sendoff::{Delivery, Error, Outcome, Result, Sink};
use sendoff_wire::{Fate, Line, Parts};

use crate::connect::Dialer;
use crate::{MqttConfig, batch, error};

/// How many connections in a row may turn out to be dead.
const MOST_TRIES: usize = 3;

/// The sink.
pub struct MqttSink {
    config: Arc<MqttConfig>,
    line: Line<Dialer>,
}

impl MqttSink {
    /// Sets it up. The connection is made by the first batch, or by [`Sink::check`].
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when a value of the settings cannot be used.
    pub fn new(config: MqttConfig) -> Result<Self> {
        config.validate()?;
        let config = Arc::new(config);
        let line = Line::new(Dialer(Arc::clone(&config)), config.connect_timeout);
        Ok(Self { config, line })
    }

    /// Sends a part of a batch by the connection there is, or a new one. No other batch uses it meanwhile.
    async fn send(&self, messages: &[&Arc<Delivery>]) -> Vec<Fate> {
        for _ in 0..MOST_TRIES {
            let link = match self.line.get().await {
                Ok(link) => link,
                Err(refusal) => return vec![Fate::Settled(refusal.outcome()); messages.len()],
            };
            // Nothing was sent through a connection that cannot be taken: another one may be tried.
            if let Some(used) = link.take().await {
                return batch::publish(used, &self.config, messages).await;
            }
        }
        vec![Fate::Settled(error::unsteady()); messages.len()]
    }
}

#[async_trait]
impl Sink for MqttSink {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        let mut parts = Parts::new(batch.len());
        while let Some(part) = parts.next() {
            let messages: Vec<&Arc<Delivery>> = part.iter().map(|place| &batch[*place]).collect();
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
        let link = self.line.get().await.map_err(Error::from)?;
        if let Some(used) = link.take().await {
            used.done();
            return Ok(());
        }
        // It had rested too long; a new one shows whether the broker is there.
        self.line.get().await.map(drop).map_err(Error::from)
    }

    async fn close(&self) {
        if let Some(link) = self.line.hang_up().await {
            link.end().await;
        }
    }
}
