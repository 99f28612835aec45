//! An outbox for tasks, some of which go straight to the broker.

use std::sync::Arc;
use std::time::SystemTime;

use sendoff::emit::OutboxTx;
use sendoff::store::{Place, Room};
use sendoff::{Delivery, Error, ErrorKind, Message, Outbox, Outcome, Pattern, Result, Sink as _, Task, Uuid};

use crate::CelerySink;

/// Emits tasks, except for those on its exclude list: they are sent at once, whatever becomes of the transaction.
///
/// For tasks that must run even if the transaction is rolled back, or that are not worth a row: a cache to be warmed, a
/// health check. Everything else belongs into the transaction.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use sendoff::{Outbox, Task};
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
    /// Tasks go to `outbox`, and those that are excluded to `sink`.
    pub fn new(outbox: Outbox, sink: Arc<CelerySink>) -> Self {
        Self {
            outbox,
            sink,
            excluded: Vec::new(),
        }
    }

    /// Excludes tasks by name; `*` stands for anything.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a pattern that cannot be used.
    pub fn exclude(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        for name in names {
            self.excluded.push(name.as_ref().parse()?);
        }
        Ok(self)
    }

    /// Whether tasks of this name bypass the outbox.
    pub fn is_excluded(&self, name: &str) -> bool {
        self.excluded.iter().any(|pattern| pattern.matches(name))
    }

    /// Emits a task in the caller's transaction, or sends it now if it is excluded. Returns its id.
    ///
    /// A task that is sent now has the headers that the contexts of the outbox add. What only an outbox can do has no effect
    /// on it: `key`, `idempotency_key`, `hold_until_due`, the sink's `hold_eta`, and hooks, which are told of rows.
    ///
    /// # Errors
    /// As [`Outbox::emit`]. For a task that is sent now: [`ErrorKind::Unreachable`] when the broker is down,
    /// [`ErrorKind::Invalid`] when it can never be sent so, [`ErrorKind::Busy`] when it may work later, and
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

    /// Emits tasks in the caller's transaction, such as those of [`Task::group`], and then sends those that are excluded.
    /// Returns their ids, in the order of the tasks.
    ///
    /// # Errors
    /// As [`TaskOutbox::emit`]. When emitting fails nothing was sent. When sending fails, it is told of the first task that
    /// was not sent; others may have been.
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
        let batch: Vec<Arc<Delivery>> = messages.map(|message| Arc::new(delivery(&message))).collect();
        let most = self.sink.limits().batch.unwrap_or(usize::MAX).max(1);
        for part in batch.chunks(most) {
            let outcomes = self.sink.publish_early(part).await;
            for (at, delivery) in part.iter().enumerate() {
                sent(&delivery.topic, outcomes.get(at))?;
            }
        }
        Ok(())
    }
}

/// Whether a task was sent.
fn sent(name: &str, outcome: Option<&Outcome>) -> Result<()> {
    let (kind, why, next) = match outcome {
        Some(Outcome::Delivered) => return Ok(()),
        Some(Outcome::SinkDown(reason)) => (ErrorKind::Unreachable, reason.text(), "check that the broker runs"),
        Some(Outcome::Permanent(reason)) => (ErrorKind::Invalid, reason.text(), "correct the task, or what it needs"),
        Some(Outcome::Temporary(reason) | Outcome::NotYet(reason)) => (ErrorKind::Busy, reason.text(), "send it again"),
        Some(Outcome::Unknown(reason)) => (
            ErrorKind::Backend,
            reason.text(),
            "it may have arrived: send it again only if it may run twice",
        ),
        None => (ErrorKind::Backend, "the sink gave no answer", "report this"),
    };
    let what = format!("the task {name:?} was not sent");
    Err(Error::new(kind, what).because(why).next_step(next))
}

/// As if it came out of the outbox at this moment.
fn delivery(message: &Message) -> Delivery {
    Delivery {
        id: message.id(),
        topic: message.topic().to_owned(),
        payload: message.payload().clone(),
        content_type: Some(sendoff::task::CONTENT_TYPE.to_owned()),
        headers: message.headers_ref().clone(),
        key: None,
        aggregate_type: None,
        aggregate_id: None,
        schema_version: None,
        idempotency_key: None,
        priority: 0,
        created_at: SystemTime::now(),
        expires_at: None,
        attempts: 0,
        max_attempts: None,
        place: Place {
            room: Room::Ready,
            lane: 0,
            seq: 0,
            leg: None,
            id: sendoff::Uuid::nil().into(),
            spot: 0,
        },
    }
}
