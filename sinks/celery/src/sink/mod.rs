//! Publishing: tasks are encoded and sent to the broker.

mod convert;
mod rabbitmq;
mod redis;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sendoff::sink::Limits;
use sendoff::{Error, Outcome, Outgoing, Reason, Result, Sink};

use self::rabbitmq::ToRabbitMq;
use self::redis::ToRedis;
use crate::config::Broker;
use crate::{CeleryConfig, Encoder, TaskCall};

/// Publishes tasks to RabbitMQ or Redis.
///
/// | what happened | outcome |
/// |---|---|
/// | RabbitMQ confirmed it and did not return it; Redis has it in its list | delivered |
/// | its eta is further away than `hold_eta` | not yet; no attempt is charged |
/// | it is not a task, or cannot be encoded as one | permanent |
/// | no queue for it | permanent; the reason names the missing one |
/// | RabbitMQ or Redis cannot be used | the sink is down; no attempt is charged |
/// | sent, and the connection was lost before the answer | unknown: sent again with the same task id |
pub struct CelerySink {
    encoder: Encoder,
    broker: Connected,
}

enum Connected {
    RabbitMq(Box<ToRabbitMq>),
    Redis(Box<ToRedis>),
}

impl CelerySink {
    /// Creates the sink. It connects when the first batch is published, or when [`Sink::check`] is called.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when a setting cannot be used.
    pub fn new(config: &CeleryConfig) -> Result<Self> {
        let broker = match config.broker()? {
            Broker::RabbitMq(settings) => Connected::RabbitMq(Box::new(ToRabbitMq::new(settings, config.declare)?)),
            Broker::Redis(redis) => Connected::Redis(Box::new(ToRedis::new(redis, config)?)),
        };
        Ok(Self {
            encoder: Encoder::new(config)?,
            broker,
        })
    }
}

impl CelerySink {
    /// Publishes without `hold_eta`, for tasks that are not in an outbox.
    pub(crate) async fn publish_early(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        self.send(batch, |_, _| Ok(None)).await
    }

    async fn send(
        &self,
        batch: &[Arc<Outgoing>],
        hold: impl Fn(&TaskCall, Timestamp) -> Result<Option<Duration>> + Send + Sync,
    ) -> Vec<Outcome> {
        // This only decides how much of a delay and of an expiration is left: both end at a fixed time.
        let now = Timestamp::now();
        let permanent = |error: Error| Outcome::Permanent(error.to_string().into());
        let encode = |at: usize| {
            let call = TaskCall::from_delivery(&batch[at]).map_err(permanent)?;
            if let Some(delay) = hold(&call, now).map_err(permanent)? {
                let reason =
                    Reason::new("the eta of the task is further away than `hold_eta` of the sink").retry_after(delay);
                return Err(Outcome::NotYet(reason));
            }
            self.encoder.encode(&call, now).map_err(permanent)
        };
        match &self.broker {
            Connected::RabbitMq(broker) => broker.publish(batch.len(), encode).await,
            Connected::Redis(broker) => broker.publish_in_parts(batch.len(), encode).await,
        }
    }
}

#[async_trait]
impl Sink for CelerySink {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        self.send(batch, |call, now| self.encoder.hold(call, now)).await
    }

    fn limits(&self) -> Limits {
        match &self.broker {
            Connected::RabbitMq(broker) => broker.limits(),
            Connected::Redis(_) => Limits::default(),
        }
    }

    async fn check(&self) -> Result<()> {
        match &self.broker {
            Connected::RabbitMq(broker) => broker.publisher.check(None).await,
            Connected::Redis(broker) => broker.commander.check().await,
        }
    }

    async fn close(&self) {
        match &self.broker {
            Connected::RabbitMq(broker) => broker.publisher.close().await,
            Connected::Redis(broker) => broker.commander.close().await,
        }
    }
}
