//! Publishing: a batch at once, each message answered by itself.

use std::sync::Arc;

use async_trait::async_trait;
use redis::{Cmd, RedisResult, Value};
use sendoff::{Delivery, Error, Outcome, Result, Sink};
use sendoff_wire::Line;

use crate::config::{Mode, NoReceivers};
use crate::dial::Dialer;
use crate::{RedisConfig, encode, error};

/// The sink.
pub struct RedisSink {
    config: RedisConfig,
    line: Line<Dialer>,
}

impl RedisSink {
    /// Sets it up. The first batch connects, or [`Sink::check`].
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when a value of the settings cannot be used.
    pub fn new(config: RedisConfig) -> Result<Self> {
        config.validate()?;
        let line = Line::new(Dialer::new(config.clone())?, config.connect_timeout);
        Ok(Self { config, line })
    }

    fn outcome(&self, answer: RedisResult<Value>) -> Outcome {
        match (answer, self.config.mode) {
            (Err(lost), _) => match lost.clone().into_server_errors().as_deref() {
                // A cluster tells a refusal as an error of the call.
                Some([(_, refusal)]) => error::refused(refusal, self.config.cluster),
                _ => error::unanswered(&lost),
            },
            (Ok(Value::ServerError(refusal)), _) => error::refused(&refusal, self.config.cluster),
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
        let mut commands = Vec::with_capacity(batch.len());
        let mut refused = Vec::new();
        for (at, delivery) in batch.iter().enumerate() {
            match encode::command(&self.config, delivery) {
                Ok(command) => commands.push(command),
                Err(outcome) => refused.push((at, outcome)),
            }
        }
        let mut outcomes = self.send(commands).await;
        // From the front, so that each is put back where it was.
        for (at, outcome) in refused {
            outcomes.insert(at, outcome);
        }
        outcomes
    }

    async fn check(&self) -> Result<()> {
        let link = self.line.get().await.map_err(Error::from)?;
        let answers = link.send(vec![redis::cmd("PING")]).await;
        match answers.into_iter().next() {
            Some(Ok(Value::ServerError(refusal))) => match error::refused(&refusal, self.config.cluster) {
                Outcome::SinkDown(reason) | Outcome::Temporary(reason) => {
                    Err(Error::new(sendoff::ErrorKind::Denied, reason.text()).next_step("see above"))
                }
                // Whatever else is wrong, it has answered.
                Outcome::Delivered | Outcome::Permanent(_) | Outcome::Unknown(_) => Ok(()),
            },
            Some(Ok(_)) => Ok(()),
            Some(Err(_)) | None => Err(
                Error::new(sendoff::ErrorKind::Unreachable, "Redis did not answer a PING")
                    .because("the connection broke, or the answer took too long")
                    .next_step("check that it runs, and what is between"),
            ),
        }
    }

    async fn close(&self) {
        if let Some(link) = self.line.hang_up().await {
            link.end();
        }
    }
}

impl RedisSink {
    /// The outcomes of these, in order.
    async fn send(&self, commands: Vec<Cmd>) -> Vec<Outcome> {
        if commands.is_empty() {
            return Vec::new();
        }
        match self.line.get().await {
            Err(refusal) => vec![refusal.outcome(); commands.len()],
            Ok(link) => {
                let answers = link.send(commands).await;
                answers.into_iter().map(|answer| self.outcome(answer)).collect()
            }
        }
    }
}
