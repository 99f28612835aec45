//! The relay's knobs. Every default is meant to be left alone.

use std::time::Duration;

/// Settings of a relay.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How long lanes stay with a relay that is not heard of.
    pub lease: Duration,
    /// How often the lease is renewed and lanes are shared anew.
    pub heartbeat: Duration,
    /// About how many messages are read at once.
    pub batch: usize,
    /// How many messages may be in hand: read and not settled yet.
    pub window: usize,
    /// How many bytes may be in hand: of payload, headers and texts. One message more than fits is read, however large it is.
    pub window_bytes: usize,
    /// The longest pause between two polls when there is nothing to do.
    pub idle_time: Duration,
    /// How often the waiting table is looked at.
    pub due_interval: Duration,
    /// How often the janitor looks for held messages that nothing holds any more.
    pub sweep: Duration,
    /// How often the store cleans up what its windows let go.
    pub clean: Duration,
    /// How long a stopping relay waits for sinks to confirm what is in flight.
    pub drain_timeout: Duration,
    /// After how many crashes of relays messages go in small groups that are noted in the store; after as many crashes on one
    /// message alone that message is dead.
    pub crash_limit: u32,
    /// Seed of all chance; `None` takes one from the system.
    pub seed: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10),
            heartbeat: Duration::from_secs(1),
            batch: 3000,
            window: 8000,
            window_bytes: 32 << 20,
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
    /// How many messages are handed over at once.
    pub batch: usize,
    /// How many such batches may be under way.
    pub concurrency: usize,
    /// How long a batch may take before its outcome is unknown.
    pub timeout: Duration,
    /// No more messages a second than this from one relay; `None` is as many as it takes.
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
