//! Emitting: one statement more in the caller's own transaction, and never a broker.

mod adapter;
mod builder;
mod created;
mod names;
mod outbox;
mod statement;
mod validate;

pub use adapter::OutboxTx;
pub use builder::OutboxBuilder;
pub use created::{AsyncCreatedHook, CreatedHook};
pub use names::{Dialect, Names};
pub use outbox::{Emitted, Outbox};
pub use statement::{Param, Statement};
