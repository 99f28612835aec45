//! The SQLite store of Sendoff: the outbox in the file that the application already has.
//!
//! SQLite runs inside the process and has one writer at a time. So every part of the store has its own connection on
//! its own thread: asynchronous callers never block, and reading does not wait for settling.
//!
//! ```
//! use sendoff::store::{EmitStore, MigrateStore};
//! use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), sendoff::Error> {
//! # let folder = tempfile::tempdir().expect("a temporary folder");
//! # let path = folder.path().join("shop.db");
//! let store = SqliteStore::new(SqliteConfig::new(path))?;
//! store.migrate().await?;
//! let mut transaction = store.begin().await?;
//! transaction.emit(&[sendoff::Message::json("order.placed", &42)?]).await?;
//! transaction.commit().await?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod busy;
mod clean;
mod clock;
mod config;
mod connect;
mod decode;
mod emit;
mod error;
mod file;
mod health;
mod history;
mod holder;
mod job;
mod lease;
mod listen;
mod migrate;
mod operate;
mod read;
mod row_id;
mod setting;
mod settle;
mod sql;
mod store;
mod work;
mod worker;

/// What stores of other tables in the same file need. Waiting for the write lock and errors are handled here only.
pub mod connection {
    pub use crate::busy::wait_for_locks;
    pub use crate::error::{breaks_connection, explain};
}

pub use config::SqliteConfig;
pub use store::SqliteStore;
