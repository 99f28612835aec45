//! A file as a Sendoff sink: one line of JSON per message, as [`sendoff::envelope`] writes it.
//!
//! A message is delivered when its line is on the disk: every batch is appended and synchronised first, and the folder,
//! too, when the file is new. A batch is written completely or not at all; after an error the file is truncated to the
//! start of the batch.
//!
//! - **Rotation** by size: `events.jsonl` becomes `events.jsonl.1`, that one `.2`, and so on; the oldest of [`keep`]
//!   files is deleted. Higher numbers are older, so `.2`, `.1` and then the file itself have the messages in order.
//! - **After a crash** the last line may be incomplete. It was never confirmed, so its message is sent again: the
//!   partial line is removed when the file is opened next, because readers of JSON lines stop at a broken one. An
//!   incomplete last line that this sink did not write is kept and ended with a line break.
//! - **Several relays** on one machine may write to one file: each batch is written under a lock on it.
//! - A file that was moved or deleted, for example by log rotation, is created again.
//!
//! [`keep`]: FileConfig::keep
#![forbid(unsafe_code)]

mod config;
mod error;
mod hold;
mod log;
mod repair;
mod rotate;
mod sink;

pub use config::FileConfig;
pub use sink::FileSink;
