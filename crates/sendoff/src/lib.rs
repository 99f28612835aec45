//! The transactional outbox.
//!
//! A service writes a [`Message`] in the **same database transaction** as its own rows; a relay delivers it afterwards,
//! at least once. When the transaction rolls back, the message never existed.
//!
//! # Emit
//!
//! `cargo add sendoff --features sqlx-postgres`, and [`Outbox::emit`] accepts the transactions of the driver:
//!
//! ```no_run
//! use sendoff::{Message, Outbox};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let pool = sqlx::PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
//!     let mut tx = pool.begin().await?;
//!     sqlx::query("INSERT INTO orders (id) VALUES (42)").execute(&mut *tx).await?;
//!     let emitted = Outbox::new().emit(&mut tx, Message::json("order.placed", &42)?.key("ada")).await?;
//!     tx.commit().await?;
//!     println!("message {} will be delivered", emitted.id());
//!     Ok(())
//! }
//! ```
//!
//! # Emit and deliver
//!
//! The program `sendoff` delivers, from a configuration file. A service can also deliver itself:
//! `cargo add sendoff --features sqlx-postgres,relay,postgres,rabbitmq`.
//!
//! ```no_run
//! use std::sync::Arc;
//! use sendoff::relay::{CancellationToken, Relay};
//! use sendoff::sinks::rabbitmq::{RabbitMqConfig, RabbitMqSink};
//! use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
//! use sendoff::{Message, Outbox, store::MigrateStore};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let url = std::env::var("DATABASE_URL")?;
//!     let store = PostgresStore::new(PostgresConfig::new(&url))?;
//!     store.migrate().await?; // creates the tables of the outbox
//!     let rabbit = RabbitMqSink::new(RabbitMqConfig::new("amqp://localhost", "shop")?)?;
//!     let outbox = Outbox::new();
//!     let relay = Relay::builder(Arc::new(store)).sink("rabbit", Arc::new(rabbit)).route("order.*".parse()?, ["rabbit"]);
//!     let relay = tokio::spawn(relay.waker(outbox.waker().clone()).build()?.run(CancellationToken::new()));
//!
//!     let mut tx = sqlx::PgPool::connect(&url).await?.begin().await?;
//!     let emitted = outbox.emit(&mut tx, Message::json("order.placed", &42)?.key("ada")).await?;
//!     outbox.commit(tx).await?; // and wakes the relay
//!     println!("message {} is delivered now", emitted.id());
//!     relay.await??; // runs until its token is cancelled
//!     Ok(())
//! }
//! ```
//!
//! # Features
//!
//! No feature is on by default. Emitting needs Rust 1.85, or as much as the driver needs; the relay, stores and sinks need
//! 1.95. Without features this crate is the core: builders, [`Outbox`], [`Inbox`], and the traits
//! of stores and sinks.
//!
//! | what | features | where |
//! |---|---|---|
//! | adapters: emit with your driver | `sqlx-postgres`, `sqlx-mysql`, `sqlx-sqlite`, `tokio-postgres`, `diesel-async-postgres`, `diesel-async-mysql`, `sea-orm`, `rusqlite`, `mysql-async` | [`adapters`]; nothing to import |
//! | context of the caller | `opentelemetry`, `sentry`, `log-context` | [`contexts`] |
//! | Celery tasks, which are emitted as messages | `celery-task` | `sendoff::Task`, `sendoff::task` |
//! | the relay | `relay` | `sendoff::relay` |
//! | stores | `postgres`, `mysql`, `sqlite` | [`stores`] |
//! | sinks | `rabbitmq`, `redis`, `nats`, `kafka`, `kafka-ssl`, `mqtt`, `http`, `celery`, `handlers`, `file`, `stdout` | [`sinks`] |
//! | workers for jobs | `worker` | `sendoff::worker` |
//! | metrics and probes | `watch` | `sendoff::watch` |
//! | what operators do | `operate` | `sendoff::operate` |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(inline)]
pub use sendoff_core::*;

pub mod adapters;
pub mod contexts;
pub mod sinks;
pub mod stores;

#[cfg(feature = "celery-task")]
#[doc(inline)]
pub use sendoff_celery as task;
#[cfg(feature = "celery-task")]
pub use sendoff_celery::Task;
#[cfg(feature = "operate")]
#[doc(inline)]
pub use sendoff_operate as operate;
#[cfg(feature = "relay")]
#[doc(inline)]
pub use sendoff_relay as relay;
#[cfg(feature = "watch")]
#[doc(inline)]
pub use sendoff_watch as watch;
#[cfg(feature = "worker")]
#[doc(inline)]
pub use sendoff_worker as worker;

/// The Rust programs in docs pages, compiled as they stand there.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/tracing.md")]
    struct Tracing;
}
