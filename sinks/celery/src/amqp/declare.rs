//! The declarations that Celery makes before it sends.

use super::{Field, Table};
use crate::config::{Argument, Declare, ExchangeType};
use crate::route::Queue;

/// An exchange, a queue, and the binding between them, to be declared on RabbitMQ. Both are durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Whether to only check that exchange and queue exist, and to bind nothing.
    pub passive: bool,
    /// The name of the exchange to declare.
    pub exchange: String,
    /// The type of the exchange to declare.
    pub exchange_type: ExchangeType,
    /// The name of the queue to declare.
    pub queue: String,
    /// The arguments of the queue.
    pub arguments: Table,
    /// The routing key of the binding.
    pub routing_key: String,
}

impl Declaration {
    pub(super) fn of(queue: &Queue, declare: Declare) -> Option<Self> {
        let passive = match declare {
            Declare::Off => return None,
            Declare::Passive => true,
            Declare::Active => false,
        };
        let arguments = queue
            .arguments
            .iter()
            .map(|(name, value)| (name.clone(), argument(value)));
        Some(Self {
            passive,
            exchange: queue.exchange.clone(),
            exchange_type: queue.exchange_type,
            queue: queue.name.clone(),
            arguments: arguments.collect(),
            routing_key: queue.routing_key.clone(),
        })
    }
}

fn argument(value: &Argument) -> Field {
    match value {
        Argument::Bool(value) => Field::Bool(*value),
        Argument::Int(number) => i32::try_from(*number).map_or(Field::Long(*number), Field::Int),
        Argument::Text(text) => Field::Text(text.clone().into_bytes()),
    }
}
