//! Pull workers: for applications that process their jobs themselves.
//!
//! Jobs are written by an [`Outbox`](sendoff::Outbox) that is set to emit [jobs](sendoff::emit::OutboxBuilder::jobs),
//! in the application's own transaction. A [`Worker`] claims them, row by row, from any
//! [`WorkStore`](sendoff::store::WorkStore): with [`Worker::claim_batch`] and the functions that mark jobs, or with the loop
//! [`Worker::run`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use sendoff::store::{MigrateStore, WorkStore};
//! use sendoff::Message;
//! use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
//! use sendoff_worker::{CancellationToken, Failure, Worker};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), sendoff::Error> {
//! # let folder = tempfile::tempdir().expect("a temporary folder");
//! # let path = folder.path().join("shop.db");
//! let store = SqliteStore::new(SqliteConfig::new(path))?;
//! store.migrate().await?;
//! let mut transaction = store.begin_jobs().await?;
//! transaction.emit(&[Message::json("invoice.print", &42)?]).await?;
//! transaction.commit().await?;
//!
//! let stop = CancellationToken::new();
//! let done = stop.clone();
//! let worker = Worker::new(Arc::new(store));
//! let report = worker
//!     .run(
//!         move |job| {
//!             let done = done.clone();
//!             async move {
//!                 let number: u32 = std::str::from_utf8(&job.payload)
//!                     .ok()
//!                     .and_then(|text| text.parse().ok())
//!                     .ok_or_else(|| Failure::permanent("the payload is not a number"))?;
//!                 println!("printing invoice {number}");
//!                 done.cancel();
//!                 Ok(())
//!             }
//!         },
//!         stop,
//!     )
//!     .await?;
//! assert_eq!(report.completed, 1);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod failure;
mod hands;
mod report;
mod run;
mod settings;
mod worker;

pub use failure::Failure;
pub use report::WorkReport;
pub use settings::WorkerSettings;
pub use worker::Worker;

/// Stops a worker: [`Worker::run`] ends after it is cancelled.
pub use tokio_util::sync::CancellationToken;
