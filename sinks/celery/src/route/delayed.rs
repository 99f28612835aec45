//! Native delayed delivery: tasks with an eta wait in RabbitMQ, in queues that workers with quorum queues declare.
//!
//! The delay in seconds is written in binary, one word of the routing key per bit. A chain of exchanges checks one bit
//! after the other; for a set bit, the message waits in a queue for that power of two. The last exchange routes it by
//! the rest of the routing key.

/// The last exchange of the chain. Workers bind the exchanges of their queues to it.
pub const DELAYED_DELIVERY_EXCHANGE: &str = "celery_delayed_delivery";

/// The longest delay in seconds that the chain of exchanges supports: eight and a half years.
pub const LONGEST_DELAY: u32 = (1 << BITS) - 1;

const BITS: u32 = 28;

/// The address of a message that waits in RabbitMQ until it is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delayed {
    /// The first exchange of the chain.
    pub exchange: String,
    /// The delay, followed by the final routing key.
    pub routing_key: String,
}

impl Delayed {
    /// For a delay in whole seconds. A delay that is too long is shortened: the worker keeps the task until its eta.
    pub(super) fn new(prefix: Option<&str>, seconds: u32, routing_key: &str) -> Self {
        let seconds = seconds.min(LONGEST_DELAY);
        let mut bits: String = (0..BITS)
            .rev()
            .map(|bit| ["0.", "1."][(seconds >> bit & 1) as usize])
            .collect();
        bits.push_str(routing_key);
        let first = format!("celery_delayed_{}", BITS - 1);
        Self {
            exchange: prefix.map_or(first.clone(), |prefix| format!("{prefix}_{first}")),
            routing_key: bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_written_bit_by_bit() {
        let delayed = Delayed::new(None, 3612, "qcelery");
        assert_eq!(delayed.exchange, "celery_delayed_27");
        assert_eq!(
            delayed.routing_key,
            "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.1.1.0.0.0.0.1.1.1.0.0.qcelery"
        );
        assert_eq!(Delayed::new(Some("shop"), 1, "q").exchange, "shop_celery_delayed_27");
    }

    #[test]
    fn a_delay_that_is_too_long_still_has_28_bits() {
        let delayed = Delayed::new(None, u32::MAX, "q");
        assert_eq!(delayed.routing_key, format!("{}q", "1.".repeat(28)));
    }
}
