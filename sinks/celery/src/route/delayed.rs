//! Native delayed delivery: tasks with an eta wait in RabbitMQ, in the queues that workers with quorum queues declare.
//!
//! The delay in seconds is written in binary, one word of the routing key a bit. A ladder of exchanges looks at one bit
//! after the other; where it is set, the message waits in a queue for that power of two. At the end of the ladder an
//! exchange drops it where the rest of the routing key leads.

/// The last exchange of the ladder. Workers bind the exchanges of their queues to it.
pub const DELAYED_DELIVERY_EXCHANGE: &str = "celery_delayed_delivery";

/// The longest delay that the ladder has bits for, in seconds: eight and a half years.
pub const LONGEST_DELAY: u32 = (1 << BITS) - 1;

const BITS: u32 = 28;

/// Where a message goes that is to wait in RabbitMQ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delayed {
    /// The first exchange of the ladder.
    pub exchange: String,
    /// The delay, and the routing key that counts at its end.
    pub routing_key: String,
}

impl Delayed {
    /// For a delay in whole seconds. One that is too long is cut: the worker keeps the task until its eta.
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
