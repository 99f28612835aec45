//! Emits in the store's own transaction, for callers without a transaction.

use async_trait::async_trait;

use crate::{Emitted, Message, Result};

/// Opens transactions for emitting. Applications use the adapter crates with their own transactions instead.
#[async_trait]
pub trait EmitStore: Send + Sync {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unreachable`], or another error of the database.
    async fn begin(&self) -> Result<Box<dyn EmitTransaction>>;
}

/// An open transaction. Dropping it rolls it back.
#[async_trait]
pub trait EmitTransaction: Send {
    /// Emits messages, as [`crate::Outbox::emit_many`] does.
    ///
    /// # Errors
    /// As there.
    async fn emit(&mut self, messages: &[Message]) -> Result<Vec<Emitted>>;

    /// Commits the transaction.
    ///
    /// # Errors
    /// After an error it is unknown whether the messages exist.
    async fn commit(self: Box<Self>) -> Result<()>;

    /// Rolls the transaction back: no message was emitted.
    ///
    /// # Errors
    /// Errors of the database; the transaction has still ended.
    async fn rollback(self: Box<Self>) -> Result<()>;
}
