//! The builder.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use uuid::Uuid;

use super::call::Call;
use super::moment::{iso8601, seconds};
use super::options::{OPTIONS, array, object};
use super::{CONTENT_TYPE, Signature};
use crate::{Error, ErrorKind, Message, OnDuplicate, Result};

/// How the body of a task is written on its way to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serializer {
    /// JSON: what Celery uses unless told otherwise.
    Json,
    /// YAML.
    Yaml,
}

/// How the body of a task is compressed on its way to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// zlib, which Celery calls gzip. Every worker can read it.
    Gzip,
    /// bzip2.
    Bzip2,
    /// Zstandard. Workers need the package `zstandard`; from Celery 5.7 on Python 3.14, or `backports.zstd`.
    Zstd,
}

/// A Celery task; becomes a [`Message`] whose id is the task id.
///
/// ```
/// use std::time::Duration;
/// use sendoff::{Message, Task};
///
/// # fn main() -> Result<(), sendoff::Error> {
/// let task = Task::new("shop.tasks.charge")
///     .args((42, "EUR"))?
///     .countdown(Duration::from_secs(60))
///     .queue("payments")
///     .then(Task::new("shop.tasks.send_receipt"));
/// let task_id = task.id();
/// let message: Message = task.into();
/// assert_eq!((message.id(), message.topic()), (task_id, "shop.tasks.charge"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub(super) call: Call,
    message: Message,
    has_id: bool,
    chain: Vec<Signature>,
    links: Vec<Signature>,
    error_links: Vec<Signature>,
    headers: Vec<(String, String)>,
    stamps: Vec<String>,
    due: Option<Due>,
    hold: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Due {
    At(SystemTime),
    In(Duration),
}

impl Task {
    /// A task of this name, without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            message: Message::bytes(name.as_str(), CONTENT_TYPE, ""),
            call: Call::new(name),
            has_id: false,
            chain: Vec::new(),
            links: Vec::new(),
            error_links: Vec::new(),
            headers: Vec::new(),
            stamps: Vec::new(),
            due: None,
            hold: None,
        }
    }

    /// Sets the task id instead of the UUID v7 that was made for it.
    #[must_use]
    pub fn with_id(mut self, id: Uuid) -> Self {
        self.message = self.message.with_id(id);
        self.has_id = true;
        self
    }

    /// Its id, under which workers know it and keep its result.
    pub fn id(&self) -> Uuid {
        self.message.id()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.call.name
    }

    /// The positional arguments: a tuple, an array or a list.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when they do not serialise, are anything else, or hold a float that is not a number.
    pub fn args(mut self, args: impl Serialize) -> Result<Self> {
        self.call.set_args(&args)?;
        Ok(self)
    }

    /// The keyword arguments: a struct or a map.
    ///
    /// # Errors
    /// As [`Task::args`].
    pub fn kwargs(mut self, kwargs: impl Serialize) -> Result<Self> {
        self.call.set_kwargs(&kwargs)?;
        Ok(self)
    }

    /// Not run before so long after the transaction that emits it began, by the database's clock.
    #[must_use]
    pub fn countdown(mut self, delay: Duration) -> Self {
        self.call.options.set("countdown", seconds(delay));
        self.due = Some(Due::In(delay));
        self
    }

    /// Not run before this point in time.
    #[must_use]
    pub fn eta(mut self, at: SystemTime) -> Self {
        self.call.options.set_text("eta", &iso8601(at));
        self.due = Some(Due::At(at));
        self
    }

    /// Kept in the outbox until `lead` before it is due, instead of being sent at once to wait in a worker's memory.
    /// Only for a task with a countdown or an eta.
    #[must_use]
    pub fn hold_until_due(mut self, lead: Duration) -> Self {
        self.hold = Some(lead);
        self
    }

    /// Not run any more so long after the transaction that emits it began, by the database's clock.
    #[must_use]
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.call.options.set("expires", seconds(time));
        self
    }

    /// Not run any more after this point in time. If it has not even been sent then, it becomes a dead letter with the
    /// reason `expired`.
    #[must_use]
    pub fn expires_at(mut self, at: SystemTime) -> Self {
        self.call.options.set_text("expires", &iso8601(at));
        self.message = self.message.expires_at(at);
        self
    }

    /// The queue, instead of the one that the relay's routes or defaults give.
    #[must_use]
    pub fn queue(self, name: &str) -> Self {
        self.text("queue", name)
    }

    /// The exchange. Needs a routing key.
    #[must_use]
    pub fn exchange(self, name: &str) -> Self {
        self.text("exchange", name)
    }

    /// The routing key.
    #[must_use]
    pub fn routing_key(self, key: &str) -> Self {
        self.text("routing_key", key)
    }

    /// Celery's priority, 0 to 255. On RabbitMQ larger is sooner and the queue must know priorities; on Redis smaller is
    /// sooner and 9 is the last. For the order in which the relay sends, convert to a [`Message`] and set its priority.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        self.json("priority", priority.to_string())
    }

    /// Adds a header for the worker. Trace context is best put here, too.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: &str) -> Self {
        let json = super::options::text_to_json(value);
        self.headers.push((name.into(), json));
        self
    }

    /// Adds a header of any type.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the value does not serialise.
    pub fn header_value(mut self, name: impl Into<String>, value: &(impl Serialize + ?Sized)) -> Result<Self> {
        let json = self.call.json("headers", value)?;
        self.headers.push((name.into(), json));
        Ok(self)
    }

    /// Adds a task that runs after this one succeeded, with its result as the first argument.
    #[must_use]
    pub fn link(mut self, task: impl Into<Signature>) -> Self {
        self.links.push(task.into());
        self
    }

    /// Adds a task that runs when this one failed.
    #[must_use]
    pub fn link_error(mut self, task: impl Into<Signature>) -> Self {
        self.error_links.push(task.into());
        self
    }

    /// Adds a step to the chain that this task begins: it runs after all steps before it, with the result of the last.
    #[must_use]
    pub fn then(mut self, task: impl Into<Signature>) -> Self {
        self.chain.push(task.into().with_own_id());
        self
    }

    /// After so long the worker kills the task.
    #[must_use]
    pub fn time_limit(self, limit: Duration) -> Self {
        self.json("time_limit", seconds(limit))
    }

    /// After so long the worker raises an exception in the task.
    #[must_use]
    pub fn soft_time_limit(self, limit: Duration) -> Self {
        self.json("soft_time_limit", seconds(limit))
    }

    /// How often the worker shall think that it has tried the task already.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        self.json("retries", retries.to_string())
    }

    /// Whether the worker throws the result away. Unless set, the task's own setting there decides.
    #[must_use]
    pub fn ignore_result(self, ignore: bool) -> Self {
        self.json("ignore_result", ignore.to_string())
    }

    /// Another name for the worker's logs.
    #[must_use]
    pub fn shadow(self, name: &str) -> Self {
        self.text("shadow", name)
    }

    /// Adds a stamp: a header that Celery hands on to the tasks that this one starts.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the value does not serialise, or the stamp is called like an option.
    pub fn stamp(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self> {
        if OPTIONS.contains(&name) {
            return Err(
                Error::new(ErrorKind::Invalid, format!("a stamp cannot be called {name:?}"))
                    .because("that is the name of an option")
                    .next_step("choose another name"),
            );
        }
        let json = self.call.json("stamps", value)?;
        if !self.stamps.iter().any(|known| known == name) {
            self.stamps.push(name.to_owned());
        }
        Ok(self.json(name, json))
    }

    /// The task at the root of the work that this one is part of. Unless set, it is its own root.
    #[must_use]
    pub fn root_id(self, id: &str) -> Self {
        self.text("root_id", id)
    }

    /// The task that started this one.
    #[must_use]
    pub fn parent_id(self, id: &str) -> Self {
        self.text("parent_id", id)
    }

    /// The queue that the result is to be sent to, for workers with the `rpc://` result backend.
    #[must_use]
    pub fn reply_to(self, queue: &str) -> Self {
        self.text("reply_to", queue)
    }

    /// How the body is written.
    #[must_use]
    pub fn serializer(self, serializer: Serializer) -> Self {
        self.text(
            "serializer",
            match serializer {
                Serializer::Json => "json",
                Serializer::Yaml => "yaml",
            },
        )
    }

    /// How the body is compressed.
    #[must_use]
    pub fn compression(self, compression: Compression) -> Self {
        self.text(
            "compression",
            match compression {
                Compression::Gzip => "gzip",
                Compression::Bzip2 => "bzip2",
                Compression::Zstd => "zstd",
            },
        )
    }

    /// Whether RabbitMQ writes it to disk, which it does unless this is set to `false`.
    #[must_use]
    pub fn persistent(self, persistent: bool) -> Self {
        self.json("delivery_mode", if persistent { "2" } else { "1" }.to_owned())
    }

    /// What workers log as the arguments, instead of the arguments.
    #[must_use]
    pub fn argsrepr(self, text: &str) -> Self {
        self.text("argsrepr", text)
    }

    /// What workers log as the keyword arguments, instead of them.
    #[must_use]
    pub fn kwargsrepr(self, text: &str) -> Self {
        self.text("kwargsrepr", text)
    }

    /// Sets the ordering key: tasks of one key first reach the broker in commit order.
    #[must_use]
    pub fn key(mut self, key: impl ToString) -> Self {
        self.message = self.message.key(key);
        self
    }

    /// Emits at most one task of this name and idempotency key within the deduplication window.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl ToString) -> Self {
        self.message = self.message.idempotency_key(key);
        self
    }

    /// Chooses between a report and an error for a duplicate.
    #[must_use]
    pub fn on_duplicate(mut self, choice: OnDuplicate) -> Self {
        self.message = self.message.on_duplicate(choice);
        self
    }

    /// How many attempts the broker gets. The worker's own retries are not meant.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u16) -> Self {
        self.message = self.message.max_attempts(attempts);
        self
    }

    pub(super) fn group_member(self, group: &str, index: u32) -> Self {
        self.text("group_id", group).json("group_index", index.to_string())
    }

    /// The whole call, and the id if one was set.
    pub(super) fn into_call(self) -> (Call, Option<Uuid>) {
        let id = self.has_id.then_some(self.message.id());
        let mut call = self.call;
        let mut list = |name: &str, signatures: &mut dyn Iterator<Item = &Signature>| {
            let mut signatures = signatures.map(Signature::to_json).peekable();
            if signatures.peek().is_some() {
                call.options.set(name, array(signatures));
            }
        };
        list("link", &mut self.links.iter());
        list("link_error", &mut self.error_links.iter());
        list("chain", &mut self.chain.iter().rev());
        if !self.headers.is_empty() {
            let headers = self.headers.iter().map(|(name, json)| (name.as_str(), json.as_str()));
            call.options.set("headers", object(headers));
        }
        if !self.stamps.is_empty() {
            let names = self.stamps.iter().map(|name| super::options::text_to_json(name));
            call.options.set("stamped_headers", array(names));
        }
        (call, id)
    }

    fn text(mut self, name: &str, text: &str) -> Self {
        self.call.options.set_text(name, text);
        self
    }

    fn json(mut self, name: &str, json: String) -> Self {
        self.call.options.set(name, json);
        self
    }
}

impl From<Task> for Message {
    fn from(task: Task) -> Self {
        let mut message = task.message.clone();
        message = match (task.hold, task.due) {
            (Some(lead), Some(Due::In(delay))) => message.delay(delay.saturating_sub(lead)),
            (Some(lead), Some(Due::At(at))) => message.available_at(at.checked_sub(lead).unwrap_or(at)),
            (None, _) | (_, None) => message,
        };
        let (call, _) = task.into_call();
        message.payload = call.to_payload().into();
        message
    }
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
