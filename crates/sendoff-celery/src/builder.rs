//! The task builder.

use std::time::{Duration, SystemTime};

use sendoff::{Error, ErrorKind, Message, OnDuplicate, Result, Uuid};
use serde::Serialize;

use crate::call::Call;
use crate::moment::{iso8601, seconds};
use crate::options::{OPTIONS, array, object};
use crate::{CONTENT_TYPE, Signature};

/// How the body of a task is encoded for the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Serializer {
    /// The body is JSON, Celery's default.
    Json,
    /// The body is YAML.
    Yaml,
}

/// How the body of a task is compressed for the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// The algorithm that Celery calls gzip, which is zlib. Every worker can decode it.
    Gzip,
    /// The algorithm bzip2.
    Bzip2,
    /// The algorithm Zstandard. Workers need the package `zstandard`; from Celery 5.7 on Python 3.14, or
    /// `backports.zstd`.
    Zstd,
}

/// A Celery task; becomes a [`Message`] whose id is the task id.
///
/// ```
/// use std::time::Duration;
/// use sendoff::Message;
/// use sendoff_celery::Task;
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
    /// A task with this name, without arguments.
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

    /// Sets the task id, replacing the generated UUID v7.
    #[must_use]
    pub fn with_id(mut self, id: Uuid) -> Self {
        self.message = self.message.with_id(id);
        self.has_id = true;
        self
    }

    /// The task's id, which workers use for the task and its result.
    pub fn id(&self) -> Uuid {
        self.message.id()
    }

    /// The task's name.
    pub fn name(&self) -> &str {
        &self.call.name
    }

    /// Sets the positional arguments: a tuple, an array or a list.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when they do not serialise, are of another type, or contain a float that is not a number.
    pub fn args(mut self, args: impl Serialize) -> Result<Self> {
        self.call.set_args(&args)?;
        Ok(self)
    }

    /// Sets the keyword arguments: a struct or a map.
    ///
    /// # Errors
    /// As [`Task::args`].
    pub fn kwargs(mut self, kwargs: impl Serialize) -> Result<Self> {
        self.call.set_kwargs(&kwargs)?;
        Ok(self)
    }

    /// Runs the task no sooner than this long after the start of the emitting transaction, by the database's clock.
    #[must_use]
    pub fn countdown(mut self, delay: Duration) -> Self {
        self.call.options.set("countdown", seconds(delay));
        self.due = Some(Due::In(delay));
        self
    }

    /// Runs the task no sooner than this point in time.
    #[must_use]
    pub fn eta(mut self, at: SystemTime) -> Self {
        self.call.options.set_text("eta", &iso8601(at));
        self.due = Some(Due::At(at));
        self
    }

    /// Keeps the task in the outbox until `lead` before it is due. Otherwise it is sent immediately and waits in a
    /// worker's memory. Only for a task with a countdown or an eta.
    #[must_use]
    pub fn hold_until_due(mut self, lead: Duration) -> Self {
        self.hold = Some(lead);
        self
    }

    /// Does not run the task later than this long after the start of the emitting transaction, by the database's clock.
    #[must_use]
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.call.options.set("expires", seconds(time));
        self
    }

    /// Does not run the task after this point in time. If it has not been sent by then, it becomes a dead letter with
    /// the reason `expired`.
    #[must_use]
    pub fn expires_at(mut self, at: SystemTime) -> Self {
        self.call.options.set_text("expires", &iso8601(at));
        self.message = self.message.expires_at(at);
        self
    }

    /// Sets the queue of the task, which overrides the relay's routes and defaults.
    #[must_use]
    pub fn queue(self, name: &str) -> Self {
        self.text("queue", name)
    }

    /// Sets the exchange of the task. It needs a routing key.
    #[must_use]
    pub fn exchange(self, name: &str) -> Self {
        self.text("exchange", name)
    }

    /// Sets the routing key of the task.
    #[must_use]
    pub fn routing_key(self, key: &str) -> Self {
        self.text("routing_key", key)
    }

    /// Sets Celery's priority, 0 to 255. On RabbitMQ, larger is sooner and the queue must support priorities. On Redis,
    /// smaller is sooner and 9 is the last. To change the order in which the relay sends, convert the task to a
    /// [`Message`] and set its priority.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        self.json("priority", priority.to_string())
    }

    /// Adds a header for the worker, such as trace context.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: &str) -> Self {
        let json = crate::options::text_to_json(value);
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

    /// Adds a task that runs after this one succeeds, with its result as the first argument.
    #[must_use]
    pub fn link(mut self, task: impl Into<Signature>) -> Self {
        self.links.push(task.into());
        self
    }

    /// Adds a task that runs if this one fails.
    #[must_use]
    pub fn link_error(mut self, task: impl Into<Signature>) -> Self {
        self.error_links.push(task.into());
        self
    }

    /// Adds a step to the chain that starts with this task. The step runs after all earlier steps, with the result of
    /// the last one.
    #[must_use]
    pub fn then(mut self, task: impl Into<Signature>) -> Self {
        self.chain.push(task.into().with_own_id());
        self
    }

    /// Sets the time after which the worker kills the task.
    #[must_use]
    pub fn time_limit(self, limit: Duration) -> Self {
        self.json("time_limit", seconds(limit))
    }

    /// Sets the time after which the worker raises an exception in the task.
    #[must_use]
    pub fn soft_time_limit(self, limit: Duration) -> Self {
        self.json("soft_time_limit", seconds(limit))
    }

    /// Sets the number of retries that the worker counts as done.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        self.json("retries", retries.to_string())
    }

    /// Sets whether the worker discards the result. By default, the task's own setting decides.
    #[must_use]
    pub fn ignore_result(self, ignore: bool) -> Self {
        self.json("ignore_result", ignore.to_string())
    }

    /// Sets another name for the worker's logs.
    #[must_use]
    pub fn shadow(self, name: &str) -> Self {
        self.text("shadow", name)
    }

    /// Adds a stamp: a header that Celery passes on to the tasks that this one starts.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the value does not serialise, or the stamp has the name of an option.
    pub fn stamp(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self> {
        if OPTIONS.contains(&name) {
            return Err(
                Error::new(ErrorKind::Invalid, format!("a stamp cannot have the name {name:?}"))
                    .because("an option of tasks has this name")
                    .next_step("choose another name"),
            );
        }
        let json = self.call.json("stamps", value)?;
        if !self.stamps.iter().any(|known| known == name) {
            self.stamps.push(name.to_owned());
        }
        Ok(self.json(name, json))
    }

    /// Sets the root of the work that this task is part of. By default, the task is its own root.
    #[must_use]
    pub fn root_id(self, id: &str) -> Self {
        self.text("root_id", id)
    }

    /// Sets the task that started this one.
    #[must_use]
    pub fn parent_id(self, id: &str) -> Self {
        self.text("parent_id", id)
    }

    /// Sets the queue for the result, for workers with the `rpc://` result backend.
    #[must_use]
    pub fn reply_to(self, queue: &str) -> Self {
        self.text("reply_to", queue)
    }

    /// Sets how the body is encoded.
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

    /// Sets how the body is compressed.
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

    /// Sets whether RabbitMQ writes the task to disk; true by default.
    #[must_use]
    pub fn persistent(self, persistent: bool) -> Self {
        self.json("delivery_mode", if persistent { "2" } else { "1" }.to_owned())
    }

    /// Sets the text that workers log instead of the arguments.
    #[must_use]
    pub fn argsrepr(self, text: &str) -> Self {
        self.text("argsrepr", text)
    }

    /// Sets the text that workers log instead of the keyword arguments.
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

    /// Chooses whether a duplicate is reported or an error.
    #[must_use]
    pub fn on_duplicate(mut self, choice: OnDuplicate) -> Self {
        self.message = self.message.on_duplicate(choice);
        self
    }

    /// Sets the maximum number of attempts to reach the broker. The worker's own retries are separate.
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
            let names = self.stamps.iter().map(|name| crate::options::text_to_json(name));
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
        let message = task.message.clone();
        let message = match (task.hold, task.due) {
            (Some(lead), Some(Due::In(delay))) => message.delay(delay.saturating_sub(lead)),
            (Some(lead), Some(Due::At(at))) => message.available_at(at.checked_sub(lead).unwrap_or(at)),
            (None, _) | (_, None) => message,
        };
        let (call, _) = task.into_call();
        message.replace_payload(call.to_payload())
    }
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
