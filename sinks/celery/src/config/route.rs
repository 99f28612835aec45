//! Settings of routes.

use serde::{Deserialize, Serialize};

use super::ExchangeType;

/// One entry of `task_routes`: defaults for tasks with this name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The name of the task. A name with `*` is a pattern, in which `?` and `[abc]` mean the same as in file names.
    pub task: String,
    /// The queue of the tasks.
    #[serde(default)]
    pub queue: Option<String>,
    /// The exchange of the tasks.
    #[serde(default)]
    pub exchange: Option<String>,
    /// The type of the tasks' exchange.
    #[serde(default)]
    pub exchange_type: Option<ExchangeType>,
    /// The routing key of the tasks.
    #[serde(default)]
    pub routing_key: Option<String>,
    /// The priority of the tasks.
    #[serde(default)]
    pub priority: Option<u8>,
    /// Whether RabbitMQ writes the tasks to disk: Celery's `delivery_mode`.
    #[serde(default)]
    pub persistent: Option<bool>,
    /// The serializer of the tasks' bodies.
    #[serde(default)]
    pub serializer: Option<String>,
    /// The compression of the tasks' bodies.
    #[serde(default)]
    pub compression: Option<String>,
}
