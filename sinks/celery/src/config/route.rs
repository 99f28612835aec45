//! Settings of routes.

use serde::{Deserialize, Serialize};

use super::ExchangeType;

/// One of `task_routes`: defaults for tasks with this name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The name of the task. With a `*` it is a pattern, in which `?` and `[abc]` mean what they do in file names.
    pub task: String,
    /// The queue.
    #[serde(default)]
    pub queue: Option<String>,
    /// The exchange.
    #[serde(default)]
    pub exchange: Option<String>,
    /// The type of the exchange.
    #[serde(default)]
    pub exchange_type: Option<ExchangeType>,
    /// The routing key.
    #[serde(default)]
    pub routing_key: Option<String>,
    /// The priority.
    #[serde(default)]
    pub priority: Option<u8>,
    /// Whether RabbitMQ writes messages to disk: `delivery_mode`.
    #[serde(default)]
    pub persistent: Option<bool>,
    /// The serializer of the body.
    #[serde(default)]
    pub serializer: Option<String>,
    /// The compression of the body.
    #[serde(default)]
    pub compression: Option<String>,
}
