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
//!     .on_raw("*", |delivery| async move {
//!         let size: u32 = delivery.payload.len().try_into()?; // any error by `?` is transient
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
//! A message goes to the first handler whose pattern fits its topic. What becomes of it:
//!
//! | the handler | outcome |
//! |---|---|
//! | returns `Ok` | delivered |
//! | returns [`HandlerError::transient`], or any error by `?` | temporary: retried |
//! | returns [`HandlerError::permanent`] | permanent: dead letter at once |
//! | panics | temporary, for this message only |
//! | takes longer than the timeout | unknown: stopped at its next await and retried |
//! | gets a payload that is not what it takes | permanent |
//! | does not exist for the topic | permanent |
//!
//! A message is handled at least once, so a handler must bear the same [`Context::id`] twice. Messages of one ordering
//! key are handled one after the other, because the relay hands over the next one only when the one before is settled.
//!
//! # In a relay
//!
//! A relay gives up on a batch that takes longer than its timeout for the sink, and then knows nothing about any message
//! of it. So this sink asks for small batches, of which none has to wait for its turn, and for twice
//! [`Handlers::timeout`].
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
