//! Standard output as a Sendoff sink: one line of JSON per message, as [`sendoff::envelope`] writes it.
//!
//! For pipes into other programs, for containers whose output is collected, and for first experiments. A message is
//! delivered when its line is written; the sink does not know whether it is read. When the reader closes the output,
//! the sink is down, and messages are deferred.
#![forbid(unsafe_code)]

mod config;
mod error;
mod lines;
mod sink;

pub use config::StdoutConfig;
pub use sink::StdoutSink;
