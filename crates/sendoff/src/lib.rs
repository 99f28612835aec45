//! The transactional outbox.
//!
//! A service writes a [`Message`] in the **same database transaction** as its own rows; a relay delivers it afterwards,
//! at least once. When the transaction rolls back, the message never existed.
//!
//! This crate holds what an application links: the message builders, the [`Outbox`] that emits them, and the traits
//! that stores and sinks implement. It knows no database driver and no broker. Pick the adapter crate for the driver
//! you already use (`sendoff-sqlx`, `sendoff-tokio-postgres`, `sendoff-diesel-async`, `sendoff-sea-orm`,
//! `sendoff-rusqlite`, `sendoff-mysql-async`).
//!
//! ```
//! use sendoff::{Event, Message};
//!
//! # fn main() -> Result<(), sendoff::Error> {
//! let raw = Message::json("order.placed", &serde_json::json!({"total": "12.50"}))?.key("customer-7");
//! let event: Message = Event::new("order", "42", "order.placed").payload(&raw.id())?.into();
//! assert_eq!(event.topic(), "order.placed");
//! # Ok(())
//! # }
//! ```
//!
//! # The rooms, in the order a message passes through them
//!
//! | room | module |
//! |---|---|
//! | build | [`message`], [`task`] |
//! | emit, with where the caller is | [`emit`], [`context`] |
//! | store: relay, operate, migrate | [`store`] |
//! | publish | [`sink`] |
//! | receive, once | [`inbox`] |
#![forbid(unsafe_code)]

pub mod context;
pub mod emit;
pub mod envelope;
mod error;
pub mod inbox;
pub mod message;
mod pattern;
pub mod sink;
pub mod store;
pub mod task;
mod wake;

pub use context::Context;
pub use emit::{Emitted, Outbox};
pub use error::{BoxError, Error, ErrorKind, Result};
pub use inbox::{Inbox, Once};
pub use message::{Event, Headers, Message, OnDuplicate};
pub use pattern::Pattern;
pub use sink::{Outcome, Reason, Sink};
pub use store::Delivery;
pub use task::Task;
pub use wake::Waker;

/// The id of a message: a UUID, version 7 when Sendoff makes it.
pub use uuid::Uuid;
