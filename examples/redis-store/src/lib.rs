//! An outbox in Redis: a small complete store, as `docs/writing-a-store.md` walks through it.
//!
//! Everything that has to happen at once is one call of one script (the files in `lua/`, put together), which Redis runs
//! from its beginning to its end; the files here put questions to it and read its answers.
//!
//! | file | what it does |
//! |---|---|
//! | `lua/` | rooms, leases, order of keys, settling: what a SQL store has in its statements |
//! | `script` | calls it, and says what an error of Redis means |
//! | `content` | a message as a row keeps it |
//! | `emit` | room: emit. A transaction that also carries the application's own commands |
//! | `read` | reading the lanes of a relay |
//! | `relay` | room: relay |
//! | `settle` | what is to happen with rows, as the script takes it |
//! | `operate`, `rows` | room: operate |
//! | `migrate` | room: migrate. There is no schema, and it says so |
#![forbid(unsafe_code)]

mod content;
mod emit;
mod migrate;
mod operate;
mod read;
mod relay;
mod rows;
mod script;
mod settle;

use std::time::Duration;

use sendoff::{Outbox, Result};

pub use emit::{RedisAdapter, RedisTransaction};
use script::Script;

/// How long idempotency keys are remembered unless told otherwise.
const WINDOW: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An outbox in Redis. Cheap to clone; all clones share one connection, which comes back by itself.
#[derive(Clone)]
pub struct RedisStore {
    script: Script,
    outbox: Outbox,
    /// How long delivered messages are kept.
    retention: Option<Duration>,
    /// How long dead letters are kept.
    dead_retention: Option<Duration>,
    /// How long idempotency keys are remembered.
    window: Duration,
}

impl RedisStore {
    /// A store on this server, such as `redis://localhost:6379`. Keys start with `prefix`; the braces make one slot of
    /// them where Redis is a cluster.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for a URL that cannot be read; nothing is asked of the server yet.
    pub fn new(url: &str, prefix: &str) -> Result<Self> {
        Ok(Self {
            script: Script::new(url, format!("{{{prefix}}}"))?,
            outbox: Outbox::new(),
            retention: None,
            dead_retention: None,
            window: WINDOW,
        })
    }

    /// Keeps delivered messages for so long.
    #[must_use]
    pub fn retention(mut self, retention: Option<Duration>) -> Self {
        self.retention = retention;
        self
    }

    /// Keeps dead letters for so long.
    #[must_use]
    pub fn dead_retention(mut self, retention: Option<Duration>) -> Self {
        self.dead_retention = retention;
        self
    }

    /// Remembers idempotency keys for so long.
    #[must_use]
    pub fn dedup_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// The outbox to emit with, into a [`RedisTransaction`].
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }
}

/// A span in microseconds, as the script takes it: small enough for its numbers.
fn micros(span: Duration) -> i64 {
    const LONGEST: i64 = 1 << 52;
    i64::try_from(span.as_micros()).unwrap_or(LONGEST).min(LONGEST)
}

/// What the script is to clean up: so many rows, and of which age.
fn windows(limit: usize, delivered: Option<Duration>, dead: Option<Duration>) -> serde_json::Value {
    let mut args = serde_json::json!({"limit": limit});
    for (name, window) in [("delivered", delivered), ("dead", dead)] {
        if let Some(window) = window {
            args[name] = micros(window).into();
        }
    }
    args
}
