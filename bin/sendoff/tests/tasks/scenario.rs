//! A call and its outcome.

use std::time::Duration;

use sendoff_celery::Task;
use serde_json::Value;

use super::Caller;

/// Who emits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Producer {
    /// `OutboxCelery`, into its own table.
    Django,
    /// [`Task`], into the outbox.
    Rust,
    /// `INSERT INTO outbox_message`, or `outbox_emit`.
    Sql,
    /// `INSERT INTO celery_outbox`.
    Row,
}

impl Producer {
    pub(crate) const ALL: [Self; 4] = [Self::Django, Self::Rust, Self::Sql, Self::Row];
}

/// When it is emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before a relay or a worker runs: the broker decides the order, and time passes.
    Early,
    /// While both are running.
    Live,
}

/// The outcome.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    /// The worker writes lines that match these.
    Runs(Vec<Value>),
    /// The worker, or the broker, drops it.
    Expires,
    /// It is a dead letter whose reason contains this text.
    Dead(&'static str),
    /// The application that emits gets this error.
    Refused(&'static str),
    /// The producer does not support the call.
    Unsaid,
}

/// A call and its outcome.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) when: When,
    /// How long after the emit the worker may start.
    pub(crate) delay: Duration,
    /// Whether it is also tried with quorum queues.
    pub(crate) on_quorum: bool,
    pub(crate) django: Option<&'static str>,
    pub(crate) rust: Option<fn(&Caller) -> Vec<Task>>,
    /// The name of the task, and its payload. One for every message.
    pub(crate) sql: Vec<(&'static str, &'static str)>,
    then: Then,
    exceptions: Vec<Exception>,
}

/// An outcome that differs for a producer, on one kind of database or on all.
struct Exception {
    producer: Producer,
    database: Option<&'static str>,
    then: Then,
    reason: &'static str,
}

pub(super) fn scenario(name: &'static str) -> Scenario {
    Scenario {
        name,
        when: When::Live,
        delay: Duration::ZERO,
        on_quorum: false,
        django: None,
        rust: None,
        sql: Vec::new(),
        then: Then::Unsaid,
        exceptions: Vec::new(),
    }
}

impl Scenario {
    pub(super) fn early(mut self) -> Self {
        self.when = When::Early;
        self
    }

    pub(super) fn delayed(mut self, by: Duration) -> Self {
        self.delay = by;
        self
    }

    pub(super) fn on_quorum(mut self) -> Self {
        self.on_quorum = true;
        self
    }

    /// An expression of Python.
    pub(super) fn django(mut self, call: &'static str) -> Self {
        self.django = Some(call);
        self
    }

    pub(super) fn rust(mut self, call: fn(&Caller) -> Vec<Task>) -> Self {
        self.rust = Some(call);
        self
    }

    /// The name and the payload of a message; a call that is several messages has several.
    pub(super) fn sql(mut self, task: &'static str, payload: &'static str) -> Self {
        self.sql.push((task, payload));
        self
    }

    /// The lines of the worker.
    pub(super) fn runs(mut self, lines: impl IntoIterator<Item = Value>) -> Self {
        self.then = Then::Runs(lines.into_iter().collect());
        self
    }

    pub(super) fn expires(mut self) -> Self {
        self.then = Then::Expires;
        self
    }

    pub(super) fn except(self, producer: Producer, then: Then, reason: &'static str) -> Self {
        self.except_on(None, producer, then, reason)
    }

    pub(super) fn except_on(
        mut self,
        database: impl Into<Option<&'static str>>,
        producer: Producer,
        then: Then,
        reason: &'static str,
    ) -> Self {
        let database = database.into();
        self.exceptions.push(Exception {
            producer,
            database,
            then,
            reason,
        });
        self
    }

    /// Whether this producer supports the call.
    pub(crate) fn is_said_by(&self, producer: Producer) -> bool {
        match producer {
            Producer::Django => self.django.is_some(),
            Producer::Rust => self.rust.is_some(),
            Producer::Sql | Producer::Row => !self.sql.is_empty(),
        }
    }

    /// The expected outcome, and why it differs from that of other producers.
    pub(crate) fn outcome(&self, producer: Producer, database: &str) -> (Then, &'static str) {
        let fits = |each: &&Exception| {
            each.producer == producer && each.database.is_none_or(|kind| database.starts_with(kind))
        };
        match self.exceptions.iter().find(fits) {
            Some(exception) => (exception.then.clone(), exception.reason),
            None => (self.then.clone(), ""),
        }
    }
}

/// The line of the first task of a call: it has the id that the producer got.
pub(super) fn first(mut line: Value) -> Value {
    line["id"] = "$id".into();
    line
}
