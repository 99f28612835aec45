//! Publishing: every task encoded, and sent to the broker.

mod convert;
mod rabbitmq;
mod redis;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use sendoff::sink::Limits;
use sendoff::{Delivery, Outcome, Result, Sink};

use self::rabbitmq::ToRabbitMq;
use self::redis::ToRedis;
use crate::config::Broker;
use crate::{CeleryConfig, Encoder, TaskCall};

/// The sink.
///
/// | what happened | outcome |
/// |---|---|
/// | RabbitMQ confirmed it, and did not return it; Redis has it in its list | delivered |
/// | it is no task, or cannot be written as one | permanent |
/// | no queue takes it | permanent: says which is missing |
/// | RabbitMQ or Redis cannot be used | the sink is down; nothing is charged |
/// | sent, and the connection was lost before an answer | unknown: sent again with the same task id |
pub struct CelerySink {
    encoder: Encoder,
    broker: Connected,
}

enum Connected {
    RabbitMq(ToRabbitMq),
    Redis(ToRedis),
}

impl CelerySink {
    /// Sets it up. The first batch connects, or [`Sink::check`].
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when a value of the settings cannot be used.
    pub fn new(config: &CeleryConfig) -> Result<Self> {
        let broker = match config.broker()? {
            Broker::RabbitMq(settings) => Connected::RabbitMq(ToRabbitMq::new(settings, config.declare)?),
            Broker::Redis(redis) => Connected::Redis(ToRedis::new(redis, config)?),
        };
        Ok(Self {
            encoder: Encoder::new(config)?,
            broker,
        })
    }
}

#[async_trait]
impl Sink for CelerySink {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        // Only decides how much of a delay and of an expiration is left: both end at a point in time.
        let now = Timestamp::now();
        let encode = |at: usize| {
            let message = TaskCall::from_delivery(&batch[at]).and_then(|call| self.encoder.encode(&call, now));
            message.map_err(|error| Outcome::Permanent(error.to_string().into()))
        };
        match &self.broker {
            Connected::RabbitMq(broker) => broker.publish(batch.len(), encode).await,
            Connected::Redis(broker) => broker.publish_in_parts(batch.len(), encode).await,
        }
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
