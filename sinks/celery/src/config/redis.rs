//! Settings of Celery's `broker_transport_options` for Redis.

use serde::{Deserialize, Serialize};

/// Settings of the Celery sink that apply only to Redis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedisConfig {
    /// The prefix of every key in Redis.
    pub global_keyprefix: String,
    /// The separator between a queue's name and a priority in the key of a list.
    pub sep: String,
    /// The priorities that have their own lists, in ascending order.
    pub priority_steps: Vec<u8>,
    /// Whether bindings are also written to the sets that Celery 5.7 keeps for its clean-up.
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
