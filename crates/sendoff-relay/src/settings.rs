//! The settings of a relay. The defaults are good for most uses.

use std::time::Duration;

/// Settings of a relay.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How long a relay keeps its lanes without a heartbeat.
    pub lease: Duration,
    /// How often the lease is renewed and the shares of lanes are computed.
    pub heartbeat: Duration,
    /// About how many messages one read returns.
    pub batch: usize,
    /// How many messages may be in flight: read and not settled yet.
    pub max_in_flight: usize,
    /// How many bytes may be in flight: of payload, headers and texts. One message of any size may exceed this.
    pub max_in_flight_bytes: usize,
    /// The longest pause between two polls when there is nothing to do.
    pub idle_time: Duration,
    /// How often the waiting table is read.
    pub due_interval: Duration,
    /// How often the janitor looks for blocked deliveries that nothing blocks any more.
    pub sweep: Duration,
    /// How often the store deletes rows that are past their retention.
    pub clean: Duration,
    /// How long a stopping relay waits for sinks to confirm what is in flight.
    pub drain_timeout: Duration,
    /// After this many crashes in a lane, relays quarantine it: messages go in small groups that are recorded in the store.
    /// After as many crashes on one message alone, that message is dead. At least 2: one crash can have any reason.
    pub crash_limit: u32,
    /// The seed of all random numbers; `None` takes one from the system.
    pub seed: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10),
            heartbeat: Duration::from_secs(1),
            batch: 3000,
            max_in_flight: 8000,
            max_in_flight_bytes: 32 << 20,
            idle_time: Duration::from_millis(200),
            due_interval: Duration::from_millis(25),
            sweep: Duration::from_secs(5),
            clean: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(25),
            crash_limit: 2,
            seed: None,
        }
    }
}

/// Settings of one sink.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkSettings {
    /// How many messages a batch has at most.
    pub batch: usize,
    /// How many batches may be with the sink at the same time.
    pub concurrency: usize,
    /// How long a batch may take before its outcome is unknown.
    pub timeout: Duration,
    /// The limit of messages per second from one relay; `None` is no limit.
    pub rate: Option<f64>,
}

impl Default for SinkSettings {
    fn default() -> Self {
        Self {
            batch: 500,
            concurrency: 4,
            timeout: Duration::from_secs(30),
            rate: None,
        }
    }
}
