//! Builds what is written to Redis for a message.

use uuid::Uuid;

use super::Binding;
use super::binding::{bound_queues, table_key};
use super::envelope::envelope;
use crate::config::{Declare, ExchangeType, RedisConfig};
use crate::encode::CeleryMessage;

/// kombu's highest priority.
const LAST_PRIORITY: u8 = 9;

/// A Celery message in the form that Redis stores.
#[derive(Debug, Clone, PartialEq)]
pub struct RedisPublish {
    /// The bindings that Celery writes when it declares the queue. A queue with a direct exchange needs none.
    pub bindings: Vec<Binding>,
    /// The list or lists to add the message to.
    pub target: RedisTarget,
    /// The element to add with `LPUSH`.
    pub envelope: String,
}

/// The lists that a message is added to.
#[derive(Debug, Clone, PartialEq)]
pub enum RedisTarget {
    /// The message is added to this list.
    List(String),
    /// The message is added to the lists of all queues bound to an exchange: see [`RedisTarget::lists`].
    Exchange {
        /// The key of the set with the exchange's bindings.
        table: String,
        /// The type of the exchange.
        exchange_type: ExchangeType,
        /// The routing key of the message.
        routing_key: String,
        /// The priority of the message.
        priority: u8,
        /// The settings for keys.
        config: RedisConfig,
    },
}

impl RedisPublish {
    /// Builds the message for Redis. `delivery_tag` must be new for every copy.
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
    /// The lists to add the message to. For an exchange, `members` are the members of its set of bindings. If no
    /// binding matches, no worker would ever see the message, so it must not count as delivered.
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
    // Below the first step kombu uses the last one.
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
