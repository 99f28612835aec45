//! The builder of an outbox.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::created::Created;
use super::outbox::Inner;
use super::statement::{Table, Texts};
use super::{Names, Outbox};
use crate::context::Context;
use crate::{BoxError, Message, Result, Waker};

/// Builds an [`Outbox`].
#[must_use]
pub struct OutboxBuilder {
    names: Names,
    table: Table,
    max_payload_bytes: usize,
    contexts: Vec<Box<dyn Context>>,
    created: Vec<Created>,
    waker: Waker,
}

impl Default for OutboxBuilder {
    fn default() -> Self {
        Self {
            names: Names::default(),
            table: Table::Message,
            max_payload_bytes: 1 << 20,
            contexts: Vec::new(),
            created: Vec::new(),
            waker: Waker::new(),
        }
    }
}

impl OutboxBuilder {
    /// Sets table names that do not start with `outbox_`, or a schema.
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Emits jobs instead of messages. No relay delivers jobs: the application's own workers
    /// [claim](crate::store::WorkStore) them. Everything else stays the same, including idempotency keys and schedules.
    pub fn jobs(mut self) -> Self {
        self.table = Table::Job;
        self
    }

    /// Sets the largest accepted payload; 1 MiB by default, which most brokers accept.
    pub fn max_payload_bytes(mut self, limit: usize) -> Self {
        self.max_payload_bytes = limit;
        self
    }

    /// Adds a context, such as the caller's trace or log context. Each emit calls all contexts once, in order; a header
    /// that the message already has is not changed.
    pub fn context(mut self, context: impl Context) -> Self {
        self.contexts.push(Box::new(context));
        self
    }

    /// Adds a hook that runs after a message's row was written, in the caller's transaction and before the commit. If
    /// the hook fails, the emit fails with [`crate::ErrorKind::Hook`], so that the caller rolls back. Hooks run in the
    /// order in which they were added, for each stored message and not for duplicates; after an error no further hook
    /// runs.
    pub fn on_created(mut self, hook: impl Fn(&Message) -> Result<(), BoxError> + Send + Sync + 'static) -> Self {
        self.created.push(Created::Sync(Box::new(hook)));
        self
    }

    /// Adds an asynchronous hook; see [`OutboxBuilder::on_created`]. The transaction stays open while the hook runs, so
    /// the hook should be fast.
    ///
    /// ```
    /// use sendoff::Outbox;
    ///
    /// let outbox = Outbox::builder()
    ///     .on_created_async(|message| {
    ///         Box::pin(async move {
    ///             if message.topic().is_empty() { Err("no topic".into()) } else { Ok(()) }
    ///         })
    ///     })
    ///     .build();
    /// # let _ = outbox;
    /// ```
    ///
    /// [`Outbox::emit_blocking`] fails if such a hook is not ready immediately.
    pub fn on_created_async(
        mut self,
        hook: impl for<'a> Fn(&'a Message) -> BoxFuture<'a, Result<(), BoxError>> + Send + Sync + 'static,
    ) -> Self {
        self.created.push(Created::Async(Box::new(hook)));
        self
    }

    /// Sets the wake source that the outbox shares with a relay in the same process.
    pub fn waker(mut self, waker: Waker) -> Self {
        self.waker = waker;
        self
    }

    /// Builds the outbox.
    pub fn build(self) -> Outbox {
        Outbox(Arc::new(Inner {
            postgres: Texts::postgres(&self.names, self.table),
            sqlite: Texts::sqlite(&self.names, self.table),
            mysql: Texts::mysql(&self.names, self.table),
            names: self.names,
            max_payload_bytes: self.max_payload_bytes,
            contexts: self.contexts,
            created: self.created,
            waker: self.waker,
        }))
    }
}
