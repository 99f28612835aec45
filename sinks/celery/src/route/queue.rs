//! A queue with the exchange that it is bound to.

use std::collections::BTreeMap;

use crate::CeleryConfig;
use crate::config::{Argument, ExchangeType, QueueConfig, QueueType};

/// A queue, its exchange and its binding, for declarations and addresses.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// The name of the queue.
    pub name: String,
    /// The exchange that the queue is bound to.
    pub exchange: String,
    /// The type of the queue's exchange.
    pub exchange_type: ExchangeType,
    /// The binding key of the queue.
    pub routing_key: String,
    /// The arguments of the queue's declaration.
    pub arguments: BTreeMap<String, Argument>,
}

impl Queue {
    /// One of `task_queues`.
    pub(super) fn configured(config: &CeleryConfig, queue: &QueueConfig) -> Self {
        let default = Self::default(config);
        let exchange_type = match (queue.exchange_type, &queue.exchange) {
            (Some(exchange_type), _) => exchange_type,
            (None, Some(_)) => ExchangeType::Direct,
            (None, None) => default.exchange_type,
        };
        let mut made = Self {
            name: queue.name.clone(),
            exchange: queue.exchange.clone().unwrap_or(default.exchange),
            exchange_type,
            routing_key: queue.routing_key.clone().unwrap_or(default.routing_key),
            arguments: arguments(config, queue.queue_type),
        };
        made.arguments.extend(queue.arguments.clone());
        made
    }

    /// The default queue, if `task_queues` does not have it.
    pub(super) fn default(config: &CeleryConfig) -> Self {
        let or_queue = |name: &Option<String>| name.clone().unwrap_or_else(|| config.default_queue.clone());
        Self {
            name: config.default_queue.clone(),
            exchange: or_queue(&config.default_exchange),
            exchange_type: config.default_exchange_type,
            routing_key: or_queue(&config.default_routing_key),
            arguments: arguments(config, config.default_queue_type),
        }
    }

    /// A queue that is not in the settings.
    pub(super) fn missing(config: &CeleryConfig, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            exchange: name.to_owned(),
            exchange_type: config.create_missing_queue_exchange_type.unwrap_or_default(),
            routing_key: name.to_owned(),
            arguments: arguments(config, config.create_missing_queue_type),
        }
    }

    /// Whether the queue is a quorum queue.
    pub fn is_quorum(&self) -> bool {
        self.arguments.get("x-queue-type") == Some(&Argument::Text("quorum".to_owned()))
    }
}

fn arguments(config: &CeleryConfig, queue_type: QueueType) -> BTreeMap<String, Argument> {
    let mut arguments = BTreeMap::new();
    if queue_type == QueueType::Quorum {
        arguments.insert("x-queue-type".to_owned(), Argument::Text("quorum".to_owned()));
    }
    if let Some(max) = config.queue_max_priority {
        arguments.insert("x-max-priority".to_owned(), Argument::Int(max.into()));
    }
    arguments
}
