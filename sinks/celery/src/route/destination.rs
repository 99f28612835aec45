//! Where a message goes.

use super::{Delayed, Queue};
use crate::config::ExchangeType;

/// Where a message goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// The exchange; empty for the one that leads to the queue that the routing key names.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
    /// The type of the exchange, as far as it is known here.
    pub exchange_type: ExchangeType,
    /// The queue that Celery would declare before it sends; none where only an exchange is known.
    pub queue: Option<Queue>,
    /// Where it goes on RabbitMQ instead, to wait there until it is due.
    pub delayed: Option<Delayed>,
}
