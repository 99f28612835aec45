//! Settings of queues.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The settings of one queue in `task_queues`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// The name of the queue.
    pub name: String,
    /// The exchange that the queue is bound to; the default exchange unless set.
    #[serde(default)]
    pub exchange: Option<String>,
    /// The type of the queue's exchange.
    #[serde(default)]
    pub exchange_type: Option<ExchangeType>,
    /// The binding key of the queue; the default routing key unless set.
    #[serde(default)]
    pub routing_key: Option<String>,
    /// The type of the queue: classic or quorum.
    #[serde(default, rename = "type")]
    pub queue_type: QueueType,
    /// Further arguments of the queue's declaration.
    #[serde(default)]
    pub arguments: BTreeMap<String, Argument>,
}

/// The value of an argument of a queue's declaration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// An argument that is a boolean.
    Bool(bool),
    /// An argument that is a number.
    Int(i64),
    /// An argument that is text.
    Text(String),
}

/// The type of an exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ExchangeType {
    /// A direct exchange routes to the queues with exactly this binding key.
    #[default]
    Direct,
    /// A topic exchange routes to the queues whose binding pattern matches.
    Topic,
    /// A fanout exchange routes to all queues that are bound to it.
    Fanout,
}

impl ExchangeType {
    /// The name of the exchange type in AMQP.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Topic => "topic",
            Self::Fanout => "fanout",
        }
    }
}

/// The type of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum QueueType {
    /// A classic queue, RabbitMQ's default.
    #[default]
    Classic,
    /// A quorum queue, which is replicated. Tasks with an eta wait in RabbitMQ instead of in a worker.
    Quorum,
}

/// Whether exchanges and queues are declared before the first message is sent to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Declare {
    /// The sink declares nothing. RabbitMQ returns a task without a queue: the task becomes a dead letter, or with
    /// Django's tables a failed attempt.
    Off,
    /// The sink checks that exchanges and queues exist. This is the default: queue arguments that differ from these
    /// settings then cannot stop a worker from starting.
    #[default]
    Passive,
    /// The sink creates exchanges and queues, as Celery's own producers do.
    Active,
}
