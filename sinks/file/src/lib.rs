//! A file as a Sendoff sink: a line of JSON a message, as [`sendoff::envelope`] writes it.
//!
//! A message is delivered when its line is on the disk: every batch is appended and synchronised before it counts, and
//! the folder too when a file is new in it. A batch is written whole or not at all; after an error the file is cut back
//! to where the batch began.
//!
//! - **Rotation** by size: `events.jsonl` becomes `events.jsonl.1`, that one `.2`, and so on; the oldest of [`keep`]
//!   files goes. The numbers count back in time, so `.2`, `.1` and then the file itself are the messages in order.
//! - **After a crash** the last line may be cut short. It was never confirmed, so its message comes again: the piece is
//!   removed when the file is next opened, because readers of JSON lines stop at a broken one. An unfinished last line
//!   that this sink did not write is kept and ended.
//! - **Several relays** on one machine may write to one file: each batch is written under a lock on it.
//! - A file that was moved or deleted meanwhile, as log rotation does, is created again.
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
