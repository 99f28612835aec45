//! What is written to Redis for a message.

use uuid::Uuid;

use super::Binding;
use super::binding::{bound_queues, table_key};
use super::envelope::envelope;
use crate::config::{Declare, ExchangeType, RedisConfig};
use crate::encode::CeleryMessage;

/// kombu knows no higher priority.
const LAST_PRIORITY: u8 = 9;

/// A message as it goes to Redis.
#[derive(Debug, Clone, PartialEq)]
pub struct RedisPublish {
    /// What Celery notes when it declares the queue. A queue with a direct exchange works without.
    pub bindings: Vec<Binding>,
    /// The list or lists that get it.
    pub target: RedisTarget,
    /// What is pushed, with `LPUSH`.
    pub envelope: String,
}

/// Where a message is pushed.
#[derive(Debug, Clone, PartialEq)]
pub enum RedisTarget {
    /// To this list.
    List(String),
    /// To the lists of the queues that are bound to an exchange: see [`RedisTarget::lists`].
    Exchange {
        /// The set of its bindings.
        table: String,
        /// Its type.
        exchange_type: ExchangeType,
        /// The routing key.
        routing_key: String,
        /// The priority.
        priority: u8,
        /// How keys are made.
        config: RedisConfig,
    },
}

impl RedisPublish {
    /// A message as it goes to Redis; `delivery_tag` must be a new one every time.
    pub fn new(message: &CeleryMessage, declare: Declare, config: &RedisConfig, delivery_tag: Uuid) -> Self {
        let destination = &message.destination;
        let priority = message.properties.priority;
        let declared = destination.queue.as_ref().filter(|_| declare == Declare::Active);
        let target = if destination.exchange.is_empty() {
            RedisTarget::List(list(&destination.routing_key, priority, config))
        } else {
            RedisTarget::Exchange {
                table: table_key(&destination.exchange, config),
                exchange_type: destination.exchange_type,
                routing_key: destination.routing_key.clone(),
                priority,
                config: config.clone(),
            }
        };
        Self {
            bindings: declared.map(|queue| Binding::of(queue, config)).unwrap_or_default(),
            target,
            envelope: envelope(message, delivery_tag),
        }
    }
}

impl RedisTarget {
    /// The lists that get the message. For an exchange, `members` are those of its set of bindings; where none fits, no
    /// worker would ever see the message, so it must not be taken for delivered.
    pub fn lists<'a>(&self, members: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        match self {
            Self::List(key) => vec![key.clone()],
            Self::Exchange {
                exchange_type,
                routing_key,
                priority,
                config,
                ..
            } => bound_queues(members, *exchange_type, routing_key, &config.sep)
                .iter()
                .map(|queue| list(queue, *priority, config))
                .collect(),
        }
    }
}

/// The list of a queue for a priority: the largest step that is not above it. Step 0 has the queue's own name.
fn list(queue: &str, priority: u8, config: &RedisConfig) -> String {
    let priority = priority.min(LAST_PRIORITY);
    let steps = &config.priority_steps;
    // Below the first step kombu takes the last one.
    let step = steps.iter().rev().find(|step| **step <= priority).or(steps.last());
    match step {
        Some(step) if *step > 0 => format!("{}{queue}{}{step}", config.global_keyprefix, config.sep),
        _ => format!("{}{queue}", config.global_keyprefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_rounded_down_to_a_step() {
        let config = RedisConfig::default();
        for (priority, key) in [
            (0, "q"),
            (2, "q"),
            (3, "q\u{6}\u{16}3"),
            (5, "q\u{6}\u{16}3"),
            (8, "q\u{6}\u{16}6"),
        ] {
            assert_eq!(list("q", priority, &config), key);
        }
        assert_eq!(list("q", 255, &config), "q\u{6}\u{16}9");
        let other = RedisConfig {
            global_keyprefix: "shop:".into(),
            sep: ":".into(),
            priority_steps: vec![1, 5],
            ..RedisConfig::default()
        };
        assert_eq!(list("q", 2, &other), "shop:q:1");
        assert_eq!(list("q", 0, &other), "shop:q:5");
    }
}
