//! Builds a `basic.publish`.

use sendoff::Result;

use super::field::{short, table};
use super::{Declaration, Table};
use crate::config::Declare;
use crate::encode::CeleryMessage;
use crate::python::{Text, Value};

/// The longest expiration that RabbitMQ accepts, in milliseconds: about 49 days.
const LONGEST_EXPIRATION: u64 = u32::MAX as u64;

/// One `basic.publish` to RabbitMQ.
#[derive(Debug, Clone, PartialEq)]
pub struct AmqpPublish {
    /// The exchange to publish to.
    pub exchange: String,
    /// The routing key of the message.
    pub routing_key: String,
    /// The properties of the message.
    pub properties: AmqpProperties,
    /// The body of the message.
    pub body: Vec<u8>,
    /// The exchange, queue and binding that must be declared before this message is sent.
    pub declaration: Option<Declaration>,
}

/// The properties that Celery sets when it publishes a task.
#[derive(Debug, Clone, PartialEq)]
pub struct AmqpProperties {
    /// The content type of the body.
    pub content_type: String,
    /// The encoding of the body.
    pub content_encoding: String,
    /// The headers of the message.
    pub headers: Table,
    /// AMQP's delivery mode. 1: the message may be kept in memory only; 2: it must be written to disk.
    pub delivery_mode: u8,
    /// The priority of the message.
    pub priority: u8,
    /// The AMQP property `correlation_id`: the task id.
    pub correlation_id: String,
    /// The queue for the result of the task.
    pub reply_to: Option<String>,
    /// The time until RabbitMQ drops the message, in milliseconds.
    pub expiration: Option<String>,
    /// The AMQP property `message_id`, from the task's option `properties`.
    pub message_id: Option<String>,
    /// The AMQP property `type`, from the task's option `properties`.
    pub kind: Option<String>,
    /// The AMQP property `user_id`, from the task's option `properties`.
    pub user_id: Option<String>,
    /// The AMQP property `app_id`, from the task's option `properties`.
    pub app_id: Option<String>,
}

impl AmqpPublish {
    /// Builds the publish for a message.
    ///
    /// An expiration that RabbitMQ would refuse is left out; the worker still gets it in the header `expires`.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when a name is too long for AMQP, or a number in a header too large.
    pub fn new(message: CeleryMessage, declare: Declare) -> Result<Self> {
        let CeleryMessage {
            headers,
            properties,
            body,
            destination,
        } = message;
        // Delayed tasks go to exchanges that workers declare.
        let queue = destination.queue.as_ref().filter(|_| destination.delayed.is_none());
        let declaration = queue.and_then(|queue| Declaration::of(queue, declare));
        let (exchange, routing_key) = match destination.delayed {
            Some(delayed) => (delayed.exchange, delayed.routing_key),
            None => (destination.exchange, destination.routing_key),
        };
        let extra = |name: &str| match properties.extra.iter().find(|(key, _)| key.is(name)) {
            Some((_, Value::Text(text))) => short(text.clone(), &format!("the property {name}")).map(Some),
            _ => Ok(None),
        };
        Ok(Self {
            exchange: short(exchange.into(), "the exchange")?,
            routing_key: short(routing_key.into(), "the routing key")?,
            properties: AmqpProperties {
                message_id: extra("message_id")?,
                kind: extra("type")?,
                user_id: extra("user_id")?,
                app_id: extra("app_id")?,
                content_type: properties.content_type.to_owned(),
                content_encoding: properties.content_encoding.to_owned(),
                headers: table(headers)?,
                delivery_mode: properties.delivery_mode,
                priority: properties.priority,
                correlation_id: short(properties.correlation_id, "the task id")?,
                reply_to: properties.reply_to.map(reply_to).transpose()?,
                expiration: properties
                    .expiration
                    .filter(|millis| *millis <= LONGEST_EXPIRATION)
                    .map(|millis| millis.to_string()),
            },
            body,
            declaration,
        })
    }
}

fn reply_to(queue: Text) -> Result<String> {
    short(queue, "the option reply_to")
}
