//! The transactional outbox.
//!
//! A service writes a [`Message`] in the **same database transaction** as its own rows; a relay delivers it afterwards,
//! at least once. When the transaction rolls back, the message never existed.
//!
//! This crate holds what an application links: the message builders, the [`Outbox`] that emits them, and the traits
//! that stores and sinks implement. It knows no database driver and no broker. Applications add the crate `sendoff`,
//! which also has the adapter of their driver; writers of adapters, stores and sinks add this one.
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
//! # Modules, in the order a message passes through them
//!
//! | step | module |
//! |---|---|
//! | build | [`message`] |
//! | emit, with the context of the caller | [`emit`], [`context`] |
//! | store: relay, operate, migrate | [`store`], with the columns of a message in [`columns`] |
//! | publish | [`sink`] |
//! | receive once | [`inbox`] |
#![forbid(unsafe_code)]

pub mod columns;
pub mod context;
pub mod emit;
pub mod envelope;
mod error;
pub mod inbox;
pub mod message;
mod pattern;
pub mod sink;
pub mod store;
mod wake;

pub use context::Context;
pub use emit::{Emitted, EmittedMany, Outbox};
pub use error::{BoxError, Error, ErrorKind, Result};
pub use inbox::{Inbox, Once};
pub use message::{Event, Headers, Message, OnDuplicate};
pub use pattern::Pattern;
pub use sink::{Outcome, Reason, Sink};
pub use store::Outgoing;
pub use wake::Waker;

/// The id of a message: a UUID. Sendoff creates version 7.
pub use uuid::Uuid;
