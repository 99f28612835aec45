//! Settings of queues.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One of `task_queues`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// Its name.
    pub name: String,
    /// The exchange that it is bound to; the default exchange unless set.
    #[serde(default)]
    pub exchange: Option<String>,
    /// The type of that exchange.
    #[serde(default)]
    pub exchange_type: Option<ExchangeType>,
    /// Its binding key; the default routing key unless set.
    #[serde(default)]
    pub routing_key: Option<String>,
    /// Classic or quorum.
    #[serde(default, rename = "type")]
    pub queue_type: QueueType,
    /// Further arguments of its declaration.
    #[serde(default)]
    pub arguments: BTreeMap<String, Argument>,
}

/// The value of an argument of a declaration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// A boolean.
    Bool(bool),
    /// A number.
    Int(i64),
    /// Text.
    Text(String),
}

/// The type of an exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ExchangeType {
    /// Routes to the queues with exactly this binding key.
    #[default]
    Direct,
    /// Routes to the queues whose binding pattern matches.
    Topic,
    /// Routes to all queues.
    Fanout,
}

impl ExchangeType {
    /// The name in AMQP.
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
    /// RabbitMQ's default.
    #[default]
    Classic,
    /// Replicated; tasks with an eta wait in RabbitMQ instead of in a worker.
    Quorum,
}

/// Whether exchanges and queues are declared before the first message is sent to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Declare {
    /// Nothing is declared. RabbitMQ returns a task without a queue: it becomes a dead letter, or with Django's tables
    /// a failed attempt.
    Off,
    /// They must exist. This is the default: then queue arguments that differ from these settings cannot stop a worker
    /// from starting.
    #[default]
    Passive,
    /// They are created, as Celery's own producers do.
    Active,
}
