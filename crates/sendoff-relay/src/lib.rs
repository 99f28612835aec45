//! The relay: claim by lanes → route → publish → settle → retry or dead-letter.
//!
//! It knows no SQL and no broker: it works on a [`RelayStore`](sendoff::store::RelayStore) and on
//! [`Sink`](sendoff::Sink)s. All waiting is by tokio's clock, which tests can pause, and all chance comes from one seed,
//! so a relay runs in a simulator as it is.
//!
//! | file | what it does |
//! |---|---|
//! | `relay` | puts the parts together and runs them |
//! | `lease` | holds lanes: heartbeat, fair share, hand-over |
//! | `desk` | decides: what is in hand, in which order it may go, what becomes of it |
//! | `publish` | calls sinks, and survives them |
//! | `hooks`, `middleware` | let the application listen, and step in |
//! | `observe` | tells what was done, by the batch, for metrics and probes |
//! | `settle` | writes the decisions back, fenced |
#![forbid(unsafe_code)]

/// Whether a bug on purpose is chosen; never outside of tests of the simulator.
#[cfg(feature = "planted")]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is_planted($crate::planted::Planted::$bug)
    };
}
#[cfg(not(feature = "planted"))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

mod breaker;
mod desk;
mod follow;
mod hooks;
mod lease;
mod middleware;
mod observe;
mod plan;
#[cfg(feature = "planted")]
pub mod planted;
mod publish;
mod rate;
mod relay;
mod report;
mod retry;
mod settings;
mod settle;
mod topic;

pub use hooks::{AsyncHooks, DeadLetter, HookCounts, HookFailures, HookResult, Hooks};
pub use middleware::{Middleware, Next};
pub use observe::{
    Claimed, Observer, PublishedBatch, PublishedMessage, Pulse, SettledBatch, SinkPulse, SinkState, WakeRung,
};
pub use relay::{Relay, RelayBuilder};
pub use report::{OnceReport, RunReport};
pub use retry::RetryPolicy;
pub use settings::{Settings, SinkSettings};
pub use topic::{HeadPolicy, TopicPolicy};
