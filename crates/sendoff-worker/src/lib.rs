//! Pull workers: for applications that process their work items themselves.
//!
//! Items are written by an [`Outbox`](sendoff::Outbox) that was told to emit [items](sendoff::emit::OutboxBuilder::items),
//! in the application's own transaction. A [`Worker`] claims them, row by row, from any
//! [`WorkStore`](sendoff::store::WorkStore): by hand with [`Worker::claim_batch`] and its marks, or with the ready-made
//! loop [`Worker::run`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use sendoff::store::{MigrateStore, WorkStore};
//! use sendoff::Message;
//! use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
//! use sendoff_worker::{Failure, Worker};
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), sendoff::Error> {
//! # let folder = tempfile::tempdir().expect("a temporary folder");
//! # let path = folder.path().join("shop.db");
//! let store = SqliteStore::open(SqliteConfig::new(path))?;
//! store.migrate().await?;
//! let mut transaction = store.begin_items().await?;
//! transaction.emit(&[Message::json("invoice.print", &42)?]).await?;
//! transaction.commit().await?;
//!
//! let stop = CancellationToken::new();
//! let done = stop.clone();
//! let worker = Worker::new(Arc::new(store));
//! let report = worker
//!     .run(
//!         move |item| {
//!             let done = done.clone();
//!             async move {
//!                 let number: u32 = std::str::from_utf8(&item.payload)
//!                     .ok()
//!                     .and_then(|text| text.parse().ok())
//!                     .ok_or_else(|| Failure::permanent("the payload is no number"))?;
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
