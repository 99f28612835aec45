//! Queues as settings name them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One of `task_queues`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// Its name.
    pub name: String,
    /// The exchange that it is bound to; the default one unless set.
    #[serde(default)]
    pub exchange: Option<String>,
    /// The type of that exchange.
    #[serde(default)]
    pub exchange_type: Option<ExchangeType>,
    /// What it is bound with; the default routing key unless set.
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
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i64),
    /// Text.
    Text(String),
}

/// The type of an exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExchangeType {
    /// To the queues that are bound with exactly the routing key.
    #[default]
    Direct,
    /// To the queues whose pattern fits.
    Topic,
    /// To all queues.
    Fanout,
}

impl ExchangeType {
    /// As AMQP names it.
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
pub enum QueueType {
    /// What RabbitMQ makes unless told otherwise.
    #[default]
    Classic,
    /// Replicated; tasks with an eta wait in RabbitMQ instead of in a worker.
    Quorum,
}

/// Whether exchanges and queues are declared before the first message is sent to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Declare {
    /// No. RabbitMQ gives back a task that no queue takes: it is a dead letter, or on the tables of Django a failed attempt.
    Off,
    /// It is only asked whether they are there. The default: an argument that these settings do not know cannot then
    /// get in the way of a worker.
    #[default]
    Passive,
    /// They are made, as Celery's own producers do.
    Active,
}
