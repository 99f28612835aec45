//! What Sendoff's stores, sinks and relay are tested with.
//!
//! | for | here |
//! |---|---|
//! | a store to read, and to simulate on | [`MemoryStore`], with its clock and its [`Faults`] |
//! | the far side of a relay | [`ScriptedSink`] |
//! | proof that nothing was lost, invented or reordered | [`Recorder`] and [`History`] |
#![forbid(unsafe_code)]

pub mod emit_suite;
pub mod history;
pub mod memory;
mod scripted_sink;

pub use history::{History, Recorder};
pub use memory::{Faults, MemoryStore, Verb};
pub use scripted_sink::{Act, Publication, ScriptedSink};
