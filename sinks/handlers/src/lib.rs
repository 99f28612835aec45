//! Rust functions in the relay's own process as a Sendoff sink.
//!
//! ```
//! use sendoff_sink_handlers::{Context, HandlerError, Handlers};
//!
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     total: u32,
//! }
//!
//! # fn main() -> sendoff::Result<()> {
//! let handlers = Handlers::builder()
//!     .on("order.*", |order: Order, ctx: Context| async move {
//!         if order.total == 0 {
//!             return Err(HandlerError::permanent("an order without a total"));
//!         }
//!         println!("{} is worth {}", ctx.id(), order.total);
//!         Ok(())
//!     })
//!     .on_raw("*", |outgoing| async move {
//!         let size: u32 = outgoing.payload.len().try_into()?; // `?` makes any error transient
//!         println!("{size} bytes");
//!         Ok(())
//!     })
//!     .concurrency(64)
//!     .build()?;
//! # let _ = handlers;
//! # Ok(())
//! # }
//! ```
//!
//! A message goes to the first handler whose pattern matches its topic. The outcomes:
//!
//! | the handler | outcome |
//! |---|---|
//! | returns `Ok` | delivered |
//! | returns [`HandlerError::transient`], or any error with `?` | temporary: retried |
//! | returns [`HandlerError::permanent`] | permanent: dead letter immediately |
//! | panics | temporary, for this message only |
//! | takes longer than the timeout | unknown: cancelled at its next await and retried |
//! | cannot decode the payload | permanent |
//! | does not exist for the topic | permanent |
//!
//! A message is handled at least once, so a handler must accept the same [`Context::id`] twice. Messages of one
//! ordering key are handled one after the other, because the relay publishes the next one only after the one before is
//! settled.
//!
//! # In a relay
//!
//! If a batch takes longer than the relay's timeout for the sink, the outcomes of all its messages are unknown. So this
//! sink requests small batches, in which no message waits for a permit, and a timeout of twice [`Handlers::timeout`].
#![forbid(unsafe_code)]

mod config;
mod context;
mod decode;
mod error;
mod handler;
mod sink;

pub use config::HandlersBuilder;
pub use context::Context;
pub use error::HandlerError;
pub use sink::Handlers;
