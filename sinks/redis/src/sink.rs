//! Publishing: one pipeline per batch, one answer per message.

use std::sync::Arc;

use async_trait::async_trait;
use redis::{Cmd, Value};
use sendoff::{Outcome, Outgoing, Result, Sink};
use sendoff_wire::{Fate, Parts};

use crate::config::{Mode, NoReceivers};
use crate::{Commander, Lack, RedisConfig, encode, error};

/// Publishes messages to Redis.
pub struct RedisSink {
    config: RedisConfig,
    commander: Commander,
}

impl RedisSink {
    /// Creates the sink. It connects when the first batch is published, or when [`Sink::check`] is called.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when a setting cannot be used.
    pub fn new(config: RedisConfig) -> Result<Self> {
        let commander = Commander::new(config.clone())?;
        Ok(Self { config, commander })
    }

    fn fate(&self, answer: Result<Value, Lack>) -> Fate {
        Fate::Settled(match (answer, self.config.mode) {
            // All messages have this key.
            (Err(Lack::Denied(reason)), _) if self.config.key.as_fixed().is_some() => Outcome::SinkDown(reason),
            (Err(lack), _) => return lack.fate(),
            (Ok(Value::Int(0)), Mode::PubSub) if self.config.no_receivers == NoReceivers::Retry => {
                error::no_receivers()
            }
            (Ok(Value::Int(_)), Mode::PubSub | Mode::List) | (Ok(Value::BulkString(_)), Mode::Stream) => {
                Outcome::Delivered
            }
            (Ok(_), _) => error::strange(),
        })
    }

    /// Sends the messages at these indexes.
    async fn send(&self, batch: &[Arc<Outgoing>], part: &[usize], apart: bool) -> Vec<Fate> {
        let mut commands: Vec<Cmd> = Vec::with_capacity(part.len());
        let mut refused = Vec::new();
        for (at, place) in part.iter().enumerate() {
            match encode::command(&self.config, &batch[*place]) {
                Ok(command) => commands.push(command),
                Err(outcome) => refused.push((at, outcome)),
            }
        }
        let answers = match apart {
            true => self.commander.send_apart(commands).await,
            false => self.commander.send(commands).await,
        };
        let mut fates: Vec<Fate> = answers.into_iter().map(|answer| self.fate(answer)).collect();
        // In ascending order, so that each insertion is at the right index.
        for (at, outcome) in refused {
            fates.insert(at, Fate::Settled(outcome));
        }
        fates
    }
}

#[async_trait]
impl Sink for RedisSink {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let mut parts = Parts::new(batch.len());
        while let Some(part) = parts.next() {
            let fates = self.send(batch, &part, parts.broke()).await;
            parts.settle(&part, fates);
        }
        parts.into_outcomes()
    }

    async fn check(&self) -> Result<()> {
        self.commander.check().await
    }

    async fn close(&self) {
        self.commander.close().await;
    }
}
