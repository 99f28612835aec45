//! The relay: claim by lanes → route → publish → settle → retry or dead-letter.
//!
//! It contains no SQL and no broker code: it uses a [`RelayStore`](sendoff::store::RelayStore) and
//! [`Sink`](sendoff::Sink)s. All waiting uses tokio's clock, which tests can pause, and all random numbers come from one
//! seed, so an unchanged relay runs in a simulator.
//!
//! | file | what it does |
//! |---|---|
//! | `relay` | the builder and the running loop: heartbeat, lanes, reading, publishing, settling, hand-over, janitors |
//! | `settings`, `plan`, `topic` | the configuration: settings, sinks and routes, policies of topics |
//! | `lease` | computes the fair share of lanes |
//! | `dispatcher` | decides what goes to a sink next, and what becomes of every delivery |
//! | `breaker`, `rate`, `retry` | circuit breaker and rate limit of a sink, and delays between attempts |
//! | `guard` | calls a sink with its middleware, and handles everything they may do |
//! | `hooks` | call the application after results, beside the relay |
//! | `observe` | reports once per batch on the relay's own task, for metrics and probes |
//! | `report` | counts the deliveries of a run |
//! | `planted` | bugs on purpose, for tests of the simulator |
#![forbid(unsafe_code)]

/// Whether a planted bug is selected; always false outside of tests of the simulator.
#[cfg(any(test, feature = "planted"))]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is_planted($crate::planted::Planted::$bug)
    };
}
#[cfg(not(any(test, feature = "planted")))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

mod breaker;
mod dispatcher;
mod guard;
mod hooks;
mod lease;
mod observe;
mod plan;
#[cfg(any(test, feature = "planted"))]
pub mod planted;
mod rate;
mod relay;
mod report;
mod retry;
mod settings;
mod topic;

pub use hooks::{DeadLetter, HookCounts, HookFailures, HookResult, Hooks};
pub use observe::{
    Claimed, Observer, PublishedBatch, PublishedMessage, RelayHealth, SettledBatch, SinkHealth, SinkState, WakeSource,
};
pub use relay::{Relay, RelayBuilder};
pub use report::{OnceReport, RunReport};
pub use retry::RetryPolicy;
pub use settings::{Settings, SinkSettings};
pub use topic::{OnFailure, TopicPolicy};

#[doc(no_inline)]
pub use sendoff::sink::{Middleware, Next};

/// Stops a relay: [`Relay::run`] ends after it is cancelled.
pub use tokio_util::sync::CancellationToken;
