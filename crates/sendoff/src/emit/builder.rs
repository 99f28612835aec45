//! Setting up an outbox.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::created::Created;
use super::outbox::Inner;
use super::statement::{Table, Texts};
use super::{Names, Outbox};
use crate::context::Context;
use crate::{BoxError, Message, Result, Waker};

/// Sets up an [`Outbox`].
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
    /// Other table names than `outbox_…`.
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Emits work items instead of messages: no relay delivers them, the application's own workers
    /// [claim](crate::store::WorkStore) them. Everything else stays as it is, idempotency keys and schedules included.
    pub fn items(mut self) -> Self {
        self.table = Table::Item;
        self
    }

    /// The largest payload that is accepted; 1 MiB unless set, which is what most brokers take.
    pub fn max_payload_bytes(mut self, limit: usize) -> Self {
        self.max_payload_bytes = limit;
        self
    }

    /// Sends along where the caller is: trace context, log context. Every source that is added is asked, in order, once a
    /// call; a header that the message has already stays as it is.
    pub fn context(mut self, context: impl Context) -> Self {
        self.contexts.push(Box::new(context));
        self
    }

    /// Adds a hook that runs after a message's row was written, in the caller's transaction and before it commits. Its
    /// error is returned by the emit as [`crate::ErrorKind::Hook`], so that the caller rolls back. Hooks run in the order
    /// in which they were added, for each message that was stored and for no duplicate; after an error none runs any more.
    pub fn on_created(mut self, hook: impl Fn(&Message) -> Result<(), BoxError> + Send + Sync + 'static) -> Self {
        self.created.push(Created::Sync(Box::new(hook)));
        self
    }

    /// [`OutboxBuilder::on_created`] for a hook that waits for something. The transaction is open meanwhile: be quick.
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
    /// With a hook that really has to wait, [`Outbox::emit_blocking`] fails.
    pub fn on_created_async(
        mut self,
        hook: impl for<'a> Fn(&'a Message) -> BoxFuture<'a, Result<(), BoxError>> + Send + Sync + 'static,
    ) -> Self {
        self.created.push(Created::Async(Box::new(hook)));
        self
    }

    /// Shares a bell with a relay in the same process.
    pub fn waker(mut self, waker: Waker) -> Self {
        self.waker = waker;
        self
    }

    /// The outbox.
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
