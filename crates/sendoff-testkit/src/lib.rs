//! What Sendoff's stores, sinks and relay are tested with.
//!
//! | for | here |
//! |---|---|
//! | a store to read, and to simulate on | [`MemoryStore`], with its clock and its [`Faults`] |
//! | a message to hand to a sink | [`delivery`] |
//! | the far side of a relay | [`ScriptedSink`] |
//! | relays in a world that goes wrong, from a seed | [`simulator`] |
//! | what a relay tells the application | [`RecordingHooks`] |
//! | proof that nothing was lost, invented or reordered | [`Recorder`] and [`History`] |
//! | what every adapter crate must be able to do | [`emit_suite`] |
//! | what every store must be able to do | [`store_suite`] |
//! | what every sink must be able to do | [`sink_suite`] |
//! | brokers and databases to connect to, and to kill | [`servers`] |
//! | a wire that can be cut | [`FaultProxy`] |
//! | what a test logs | [`Log`] |
//! | encryption for a server that has none | [`TlsProxy`] |
#![forbid(unsafe_code)]

/// Whether a bug on purpose is chosen; never outside of tests of the simulator.
#[cfg(feature = "planted")]
macro_rules! planted {
    ($bug:ident) => {
        ::sendoff_relay::planted::is_planted(::sendoff_relay::planted::Planted::$bug)
    };
}
#[cfg(not(feature = "planted"))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

pub mod emit_suite;
mod fault_proxy;
pub mod history;
mod log;
pub mod memory;
mod outgoing;
pub mod recording_hooks;
mod scripted_sink;
pub mod servers;
pub mod simulator;
pub mod sink_suite;
pub mod store_suite;
mod tls_proxy;
mod trials;

pub use fault_proxy::{Fault, FaultProxy};
pub use history::{History, Recorder};
pub use log::Log;
pub use memory::{Faults, MemoryStore, Verb};
pub use outgoing::outgoing;
pub use recording_hooks::RecordingHooks;
pub use scripted_sink::{Act, Publication, ScriptedSink};
pub use tls_proxy::TlsProxy;
