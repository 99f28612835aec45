//! The settings of a relay. The defaults suit most uses.

use std::time::Duration;

/// Settings of a relay.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How long a relay keeps its lanes without a heartbeat.
    pub lease: Duration,
    /// How often the relay renews its lease and computes its share of the lanes.
    pub heartbeat: Duration,
    /// How many messages one read returns, approximately.
    pub batch: usize,
    /// The largest number of messages in flight: read and not settled yet.
    pub max_in_flight: usize,
    /// The most bytes in flight: payload, headers and texts. A single message of any size may exceed this.
    pub max_in_flight_bytes: usize,
    /// The longest pause between two polls while there is nothing to do.
    pub idle_time: Duration,
    /// How often the waiting table is read.
    pub due_interval: Duration,
    /// How often the relay looks for blocked deliveries that nothing blocks any more.
    pub sweep: Duration,
    /// How often the store deletes rows that are past their retention.
    pub clean: Duration,
    /// How long a stopping relay waits for sinks to confirm messages in flight.
    pub drain_timeout: Duration,
    /// After this many crashes in a lane, relays quarantine the lane: messages go in small groups that are recorded in
    /// the store. After as many crashes on one message alone, that message is dead. At least 2: one crash can have any
    /// reason.
    pub crash_limit: u32,
    /// The seed of all random numbers; `None`: a random seed.
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

/// Limits of one sink.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkSettings {
    /// The largest number of messages per batch.
    pub batch: usize,
    /// The number of batches that may be with the sink at the same time.
    pub concurrency: usize,
    /// How long a batch may take before its outcome is unknown.
    pub timeout: Duration,
    /// The largest number of messages per second from one relay; `None`: no limit.
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
