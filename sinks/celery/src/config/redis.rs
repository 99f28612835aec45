//! Settings of Celery's `broker_transport_options` for Redis.

use serde::{Deserialize, Serialize};

/// What only matters to Redis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedisConfig {
    /// What stands before every key.
    pub global_keyprefix: String,
    /// What stands between the name of a queue and its priority.
    pub sep: String,
    /// The priorities that have a list of their own, in ascending order.
    pub priority_steps: Vec<u8>,
    /// Whether bindings are also noted in the sets that Celery 5.7 keeps for its clean-up.
    pub permanent_bindings: bool,
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            global_keyprefix: String::new(),
            sep: "\u{6}\u{16}".to_owned(),
            priority_steps: vec![0, 3, 6, 9],
            permanent_bindings: true,
        }
    }
}
