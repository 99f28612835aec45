//! Publishing: a batch at once, each message answered by itself.

use std::sync::Arc;

use async_trait::async_trait;
use redis::{Cmd, Value};
use sendoff::{Delivery, Outcome, Result, Sink};

use crate::config::{Mode, NoReceivers};
use crate::{Commander, RedisConfig, encode, error};

/// The sink.
pub struct RedisSink {
    config: RedisConfig,
    commander: Commander,
}

impl RedisSink {
    /// Sets it up. The first batch connects, or [`Sink::check`].
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when a value of the settings cannot be used.
    pub fn new(config: RedisConfig) -> Result<Self> {
        let commander = Commander::new(config.clone())?;
        Ok(Self { config, commander })
    }

    fn outcome(&self, answer: Result<Value, Outcome>) -> Outcome {
        match (answer, self.config.mode) {
            (Err(outcome), _) => outcome,
            (Ok(Value::Int(0)), Mode::PubSub) if self.config.no_receivers == NoReceivers::Retry => {
                error::no_receivers()
            }
            (Ok(Value::Int(_)), Mode::PubSub | Mode::List) | (Ok(Value::BulkString(_)), Mode::Stream) => {
                Outcome::Delivered
            }
            (Ok(_), _) => error::strange(),
        }
    }
}

#[async_trait]
impl Sink for RedisSink {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        let mut commands: Vec<Cmd> = Vec::with_capacity(batch.len());
        let mut refused = Vec::new();
        for (at, delivery) in batch.iter().enumerate() {
            match encode::command(&self.config, delivery) {
                Ok(command) => commands.push(command),
                Err(outcome) => refused.push((at, outcome)),
            }
        }
        let answers = self.commander.send(commands).await;
        let mut outcomes: Vec<Outcome> = answers.into_iter().map(|answer| self.outcome(answer)).collect();
        // From the front, so that each is put back where it was.
        for (at, outcome) in refused {
            outcomes.insert(at, outcome);
        }
        outcomes
    }

    async fn check(&self) -> Result<()> {
        self.commander.check().await
    }

    async fn close(&self) {
        self.commander.close().await;
    }
}
