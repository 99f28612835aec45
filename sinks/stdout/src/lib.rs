//! Standard output as a Sendoff sink: a line of JSON a message, as [`sendoff::envelope`] writes it.
//!
//! For pipes into other programs, for containers whose output is collected, and for a first look. A message is delivered
//! when its line is written; whether somebody reads it is not known. When the reader goes away the sink is down, and
//! messages wait.
#![forbid(unsafe_code)]

mod config;
mod error;
mod lines;
mod sink;

pub use config::StdoutConfig;
pub use sink::StdoutSink;
