//! An outbox for tasks, with an exclude list of tasks that are sent directly.

use std::sync::Arc;
use std::time::SystemTime;

use sendoff::emit::OutboxTx;
use sendoff::store::{RowRef, Table};
use sendoff::{Error, ErrorKind, Message, Outbox, Outcome, Outgoing, Pattern, Result, Sink as _, Uuid};
use sendoff_celery::Task;

use crate::CelerySink;

/// Emits tasks, except those on the exclude list: they are sent immediately, independent of the transaction.
///
/// The exclude list is for tasks that must run even if the transaction is rolled back, or that are not worth a row, for
/// example warming a cache or a health check. All other tasks belong in the transaction.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use sendoff::Outbox;
/// use sendoff_celery::Task;
/// use sendoff_sink_celery::{CeleryConfig, CelerySink, TaskOutbox};
///
/// # fn set_up(config: &CeleryConfig) -> sendoff::Result<TaskOutbox> {
/// let sink = Arc::new(CelerySink::new(config)?);
/// TaskOutbox::new(Outbox::new(), sink).exclude(["shop.health.*", "shop.cache.warm"])
/// # }
/// ```
#[derive(Clone)]
pub struct TaskOutbox {
    outbox: Outbox,
    sink: Arc<CelerySink>,
    excluded: Vec<Pattern>,
}

impl TaskOutbox {
    /// Creates a task outbox. It emits tasks to `outbox`, and sends excluded tasks to `sink`.
    pub fn new(outbox: Outbox, sink: Arc<CelerySink>) -> Self {
        Self {
            outbox,
            sink,
            excluded: Vec::new(),
        }
    }

    /// Excludes tasks by name; `*` matches any text.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid pattern.
    pub fn exclude(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        for name in names {
            self.excluded.push(name.as_ref().parse()?);
        }
        Ok(self)
    }

    /// Whether tasks with this name bypass the outbox.
    pub fn is_excluded(&self, name: &str) -> bool {
        self.excluded.iter().any(|pattern| pattern.matches(name))
    }

    /// Emits a task in the caller's transaction, or sends it now if it is excluded. Returns the task's id; for a
    /// duplicate, the id of the first task.
    ///
    /// A task that is sent now has the headers that the outbox's contexts add. Features of the outbox have no effect on
    /// it: `key`, `idempotency_key`, `hold_until_due`, the sink's `hold_eta`, and hooks.
    ///
    /// # Errors
    /// As [`Outbox::emit`]. For a task that is sent now: [`ErrorKind::Unreachable`] when the broker is down,
    /// [`ErrorKind::Invalid`] when it can never be sent, [`ErrorKind::Busy`] when a later attempt may succeed, and
    /// [`ErrorKind::Backend`] when it may have arrived.
    pub async fn emit<A, Tx: OutboxTx<A>>(&self, tx: Tx, task: Task) -> Result<Uuid> {
        let message = Message::from(task);
        if self.is_excluded(message.topic()) {
            let id = message.id();
            self.send(vec![message]).await?;
            return Ok(id);
        }
        Ok(self.outbox.emit(tx, message).await?.id())
    }

    /// Emits tasks in the caller's transaction, for example those of [`Task::group`], and then sends the excluded ones.
    /// Returns their ids, in the order of the tasks.
    ///
    /// # Errors
    /// As [`TaskOutbox::emit`] and [`Outbox::emit_many`]. When emitting fails, nothing was sent. When sending fails, the error names the first
    /// task that was not sent; others may have been.
    pub async fn emit_many<A, Tx: OutboxTx<A>>(
        &self,
        tx: Tx,
        tasks: impl IntoIterator<Item = Task>,
    ) -> Result<Vec<Uuid>> {
        let messages: Vec<Message> = tasks.into_iter().map(Message::from).collect();
        let mut ids: Vec<Uuid> = messages.iter().map(Message::id).collect();
        let (mut places, mut emitting, mut sending) = (Vec::new(), Vec::new(), Vec::new());
        for (place, message) in messages.into_iter().enumerate() {
            if self.is_excluded(message.topic()) {
                sending.push(message);
            } else {
                places.push(place);
                emitting.push(message);
            }
        }
        if !emitting.is_empty() {
            let emitted = self.outbox.emit_many(tx, emitting).await?;
            for (place, emitted) in places.into_iter().zip(emitted) {
                ids[place] = emitted.id();
            }
        }
        self.send(sending).await?;
        Ok(ids)
    }

    async fn send(&self, messages: Vec<Message>) -> Result<()> {
        let messages = messages.into_iter().map(|message| self.outbox.with_context(message));
        let batch: Vec<Arc<Outgoing>> = messages.map(|message| Arc::new(outgoing(&message))).collect();
        let most = self.sink.limits().batch.unwrap_or(usize::MAX).max(1);
        for part in batch.chunks(most) {
            let outcomes = self.sink.publish_early(part).await;
            for (at, outgoing) in part.iter().enumerate() {
                sent(&outgoing.topic, outcomes.get(at))?;
            }
        }
        Ok(())
    }
}

/// Turns an outcome into a result.
fn sent(name: &str, outcome: Option<&Outcome>) -> Result<()> {
    let (kind, why, next) = match outcome {
        Some(Outcome::Delivered) => return Ok(()),
        Some(Outcome::SinkDown(reason)) => (ErrorKind::Unreachable, reason.text(), "check that the broker runs"),
        Some(Outcome::Permanent(reason)) => (
            ErrorKind::Invalid,
            reason.text(),
            "correct the task or the broker's queues",
        ),
        Some(Outcome::Temporary(reason) | Outcome::NotYet(reason)) => (ErrorKind::Busy, reason.text(), "send it again"),
        Some(Outcome::Unknown(reason)) => (
            ErrorKind::Backend,
            reason.text(),
            "the task may have arrived; send it again only if it may run twice",
        ),
        None => (
            ErrorKind::Backend,
            "the sink returned no outcome",
            "please report this as a bug",
        ),
    };
    let what = format!("the task {name:?} was not sent");
    Err(Error::new(kind, what).because(why).next_step(next))
}

/// The message as if the relay had read it from the outbox now.
fn outgoing(message: &Message) -> Outgoing {
    Outgoing {
        id: message.id(),
        topic: message.topic().to_owned(),
        payload: message.payload().clone(),
        content_type: Some(sendoff_celery::CONTENT_TYPE.to_owned()),
        headers: message.headers_ref().clone(),
        created_at: SystemTime::now(),
        ..Outgoing::blank(RowRef {
            table: Table::Ready,
            lane: 0,
            seq: 0,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        })
    }
}
