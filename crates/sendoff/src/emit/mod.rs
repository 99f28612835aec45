//! Emitting: one statement more in the caller's own transaction, and never a broker.

mod adapter;
mod names;
mod outbox;
mod statement;
mod validate;

pub use adapter::OutboxTx;
pub use names::{Dialect, Names};
pub use outbox::{CreatedHook, Emitted, Outbox, OutboxBuilder};
pub use statement::{Param, Statement};
