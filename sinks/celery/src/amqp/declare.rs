//! The declarations that Celery makes before it sends.

use super::{Field, Table};
use crate::config::{Argument, Declare, ExchangeType};
use crate::route::Queue;

/// An exchange, a queue, and the binding between them. Both are durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Only check that they exist; bind nothing.
    pub passive: bool,
    /// The exchange.
    pub exchange: String,
    /// The type of the exchange.
    pub exchange_type: ExchangeType,
    /// The queue.
    pub queue: String,
    /// The arguments of the queue.
    pub arguments: Table,
    /// The binding key of the queue.
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
