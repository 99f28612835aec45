//! Emitting: one more statement in the caller's own transaction, without contacting a broker.

mod adapter;
mod builder;
mod commit;
mod created;
mod emitted;
mod names;
mod outbox;
mod statement;
mod validate;

pub use adapter::{CommitTx, OutboxTx};
pub use builder::OutboxBuilder;
pub use created::{AsyncCreatedHook, CreatedHook};
pub use emitted::{Duplicates, Emitted, EmittedMany};
pub use names::{Dialect, Names};
pub use outbox::Outbox;
pub use statement::{Param, Statement};
