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
    /// What only an outbox can do has no effect on a task that is sent now: `key`, `idempotency_key`, `hold_until_due`.
    ///
    /// # Errors
    /// As [`Outbox::emit`]. For a task that is sent now: [`ErrorKind::Unreachable`] when the broker is down,
    /// [`ErrorKind::Invalid`] when it can never be sent so, [`ErrorKind::Busy`] when it may work later, and
    /// [`ErrorKind::Backend`] when it may have arrived.
    pub async fn emit<A, Tx: OutboxTx<A>>(&self, tx: Tx, task: Task) -> Result<Uuid> {
        let message = Message::from(task);
        if self.is_excluded(message.topic()) {
            return self.send(message).await;
        }
        Ok(self.outbox.emit(tx, message).await?.id())
    }

    async fn send(&self, message: Message) -> Result<Uuid> {
        let id = message.id();
        let delivery = Arc::new(delivery(&message));
        let outcome = self.sink.publish(std::slice::from_ref(&delivery)).await.pop();
        let what = format!("the task {:?} was not sent", message.topic());
        let (kind, reason, next) = match outcome {
            Some(Outcome::Delivered) => return Ok(id),
            Some(Outcome::SinkDown(reason)) => (ErrorKind::Unreachable, reason, "check that the broker runs"),
            Some(Outcome::Permanent(reason)) => (ErrorKind::Invalid, reason, "correct the task, or what it needs"),
            Some(Outcome::Temporary(reason)) => (ErrorKind::Busy, reason, "send it again"),
            Some(Outcome::Unknown(reason)) => (
                ErrorKind::Backend,
                reason,
                "it may have arrived: send it again only if it may run twice",
            ),
            None => (ErrorKind::Backend, "the sink gave no answer".into(), "report this"),
        };
        Err(Error::new(kind, what).because(reason.text()).next_step(next))
    }
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
            spot: 0,
        },
    }
}
