//! An outbox in Redis: a small complete store. `docs/writing-a-store.md` explains it.
//!
//! Every atomic step is one call of one script (the concatenated files in `lua/`), which Redis runs from start to
//! end. The files here call it and read its answers.
//!
//! | file | what it does |
//! |---|---|
//! | `lua/` | tables, leases, order of keys, settling: what a SQL store has in its statements |
//! | `script` | calls the script, and maps errors of Redis |
//! | `content` | the stored content of a message |
//! | `emit` | `EmitStore`: a transaction that also has the application's own commands |
//! | `read` | `Reader`: reads the lanes of a relay |
//! | `relay` | `RelayStore` |
//! | `settle` | settlements as arguments of the script |
//! | `operate`, `rows` | `OperateStore` |
//! | `migrate` | `MigrateStore`: there is no schema, so it returns `Unsupported` |
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

/// How long idempotency keys are taken by default.
const WINDOW: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An outbox in Redis. Cheap to clone; all clones share one connection, which reconnects automatically.
#[derive(Clone)]
pub struct RedisStore {
    script: Script,
    outbox: Outbox,
    /// How long delivered messages are kept.
    retention: Option<Duration>,
    /// How long dead letters are kept.
    dead_retention: Option<Duration>,
    /// How long idempotency keys are taken.
    window: Duration,
}

impl RedisStore {
    /// A store on this server, for example `redis://localhost:6379`. Keys start with `prefix` in braces, which puts
    /// them into one slot of a cluster.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for an invalid URL. The server is not contacted yet.
    pub fn new(url: &str, prefix: &str) -> Result<Self> {
        Ok(Self {
            script: Script::new(url, format!("{{{prefix}}}"))?,
            outbox: Outbox::new(),
            retention: None,
            dead_retention: None,
            window: WINDOW,
        })
    }

    /// How long delivered messages are kept. Without it they are deleted.
    #[must_use]
    pub fn retention(mut self, retention: Option<Duration>) -> Self {
        self.retention = retention;
        self
    }

    /// How long dead letters are kept. Without it they are kept until an operator acts.
    #[must_use]
    pub fn dead_retention(mut self, retention: Option<Duration>) -> Self {
        self.dead_retention = retention;
        self
    }

    /// How long idempotency keys are taken.
    #[must_use]
    pub fn dedup_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// The outbox that emits into a [`RedisTransaction`].
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }
}

/// A duration in microseconds, limited to what a Lua number represents exactly.
fn micros(span: Duration) -> i64 {
    const LONGEST: i64 = 1 << 52;
    i64::try_from(span.as_micros()).unwrap_or(LONGEST).min(LONGEST)
}

/// The arguments for cleaning up: how many rows, and from which age.
fn retention(limit: usize, delivered: Option<Duration>, dead: Option<Duration>) -> serde_json::Value {
    let mut args = serde_json::json!({"limit": limit});
    for (name, window) in [("delivered", delivered), ("dead", dead)] {
        if let Some(window) = window {
            args[name] = micros(window).into();
        }
    }
    args
}
