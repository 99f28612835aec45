//! The address of a message on the broker.

use super::{Delayed, Queue};
use crate::config::ExchangeType;

/// The address of a message on the broker.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// The exchange; empty for the default exchange, where the routing key is the name of a queue.
    pub exchange: String,
    /// The routing key of the message.
    pub routing_key: String,
    /// The type of the exchange, if it is known.
    pub exchange_type: ExchangeType,
    /// The queue that Celery would declare before it sends; `None` if only an exchange is known.
    pub queue: Option<Queue>,
    /// The address on RabbitMQ where the task waits until it is due; `None` if it does not wait.
    pub delayed: Option<Delayed>,
}
