//! The message itself.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Serialize;
use uuid::Uuid;

use super::Headers;
use crate::{Error, ErrorKind, Result};

/// What to do if a message with the same topic and idempotency key was emitted within the deduplication window.
///
/// Unless the application chooses, a duplicate by an own key is reported. A duplicate by the derived key of an
/// [`Event`](super::Event) fails: the application did not choose that key, so it would hardly check for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDuplicate {
    /// Nothing is stored, and [`crate::Emitted::Duplicate`] has the id of the first message.
    Report,
    /// Nothing is stored, and the emit fails with [`ErrorKind::Duplicate`]. The transaction is still usable.
    Fail,
}

/// When a message becomes available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// The message becomes available at a point in time.
    At(SystemTime),
    /// The message becomes available this long after the emitting statement, by the database's clock.
    In(Duration),
}

/// A message to be delivered once the transaction that emits it has committed.
///
/// The payload is bytes and stays byte-identical from end to end.
///
/// ```
/// use std::time::Duration;
/// use sendoff::Message;
///
/// # fn main() -> Result<(), sendoff::Error> {
/// let message = Message::json("invoice.due", &serde_json::json!({"invoice": 7}))?
///     .key("customer-42")
///     .header("tenant", "acme")
///     .delay(Duration::from_secs(3600))
///     .max_attempts(10);
/// assert_eq!(message.payload().as_ref(), br#"{"invoice":7}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub(crate) id: Uuid,
    pub(crate) topic: String,
    pub(crate) payload: Bytes,
    pub(crate) content_type: Option<String>,
    pub(crate) headers: Headers,
    pub(crate) key: Option<String>,
    pub(crate) aggregate_type: Option<String>,
    pub(crate) aggregate_id: Option<String>,
    pub(crate) schema_version: Option<i32>,
    pub(crate) idempotency_key: Option<String>,
    /// Whether the idempotency key is the aggregate, and not chosen by the application.
    pub(crate) has_derived_key: bool,
    pub(crate) on_duplicate: Option<OnDuplicate>,
    pub(crate) available: Option<Schedule>,
    pub(crate) expires_at: Option<SystemTime>,
    pub(crate) priority: i16,
    pub(crate) max_attempts: Option<u16>,
}

impl Message {
    /// A message with a payload of bytes, delivered unchanged.
    pub fn bytes(topic: impl Into<String>, content_type: impl Into<String>, payload: impl Into<Bytes>) -> Self {
        let mut message = Self::with_payload(topic, payload.into());
        message.content_type = Some(content_type.into());
        message
    }

    /// A message with a JSON payload. UUIDs, decimals, dates and times use their own `serde` implementations.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the value does not serialise.
    pub fn json(topic: impl Into<String>, payload: &(impl Serialize + ?Sized)) -> Result<Self> {
        let topic = topic.into();
        match serde_json::to_vec(payload) {
            Ok(bytes) => Ok(Self::with_payload(topic, bytes.into())),
            Err(error) => Err(Error::new(
                ErrorKind::Invalid,
                format!("the payload of {topic:?} does not serialise"),
            )
            .because("the Serialize implementation of the payload failed")
            .next_step("check for maps with keys that are not strings")
            .with_source(error)),
        }
    }

    pub(crate) fn with_payload(topic: impl Into<String>, payload: Bytes) -> Self {
        Self {
            id: Uuid::now_v7(),
            topic: topic.into(),
            payload,
            content_type: None,
            headers: Headers::new(),
            key: None,
            aggregate_type: None,
            aggregate_id: None,
            schema_version: None,
            idempotency_key: None,
            has_derived_key: false,
            on_duplicate: None,
            available: None,
            expires_at: None,
            priority: 0,
            max_attempts: None,
        }
    }

    /// Replaces the payload with these bytes; the content type stays. For builders that know the payload last.
    #[must_use]
    pub fn replace_payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Sets the id, replacing the generated UUID v7.
    #[must_use]
    pub fn with_id(mut self, id: Uuid) -> Self {
        self.id = id;
        self
    }

    /// Sets the ordering key: messages of one key first reach a sink in commit order.
    #[must_use]
    pub fn key(mut self, key: impl ToString) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// Sets the aggregate of the message. An [`Event`](super::Event) always has one, and derives its keys from it.
    #[must_use]
    pub fn aggregate(mut self, aggregate_type: impl Into<String>, aggregate_id: impl ToString) -> Self {
        self.aggregate_type = Some(aggregate_type.into());
        self.aggregate_id = Some(aggregate_id.to_string());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Adds several headers.
    #[must_use]
    pub fn headers(mut self, headers: Headers) -> Self {
        for (name, value) in &headers {
            self.headers.insert(name, value);
        }
        self
    }

    /// Emits at most one message of this topic and idempotency key within the deduplication window. A duplicate is
    /// reported, unless [`Message::on_duplicate`] says otherwise.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl ToString) -> Self {
        self.idempotency_key = Some(key.to_string());
        self.has_derived_key = false;
        self
    }

    /// Removes the idempotency key: the message may repeat.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.idempotency_key = None;
        self.has_derived_key = false;
        self
    }

    /// Chooses whether a duplicate is reported or an error.
    #[must_use]
    pub fn on_duplicate(mut self, choice: OnDuplicate) -> Self {
        self.on_duplicate = Some(choice);
        self
    }

    /// Whether emitting this message fails if it is a duplicate.
    pub(crate) fn fails_as_duplicate(&self) -> bool {
        match self.on_duplicate {
            Some(OnDuplicate::Fail) => true,
            Some(OnDuplicate::Report) => false,
            None => self.has_derived_key,
        }
    }

    /// Delivers the message no sooner than this point in time.
    #[must_use]
    pub fn available_at(mut self, at: SystemTime) -> Self {
        self.available = Some(Schedule::At(at));
        self
    }

    /// Delivers the message no sooner than this long from now, by the database's clock.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.available = Some(Schedule::In(delay));
        self
    }

    /// Does not deliver the message after this point in time: it becomes a dead letter with the reason `expired`. If an
    /// operator then retries it, it is delivered without an expiry.
    #[must_use]
    pub fn expires_at(mut self, at: SystemTime) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Sets the priority. Above 0, the message is delivered before others; below 0, after others. The order within a
    /// key is kept. The priority does not apply to messages that are scheduled or were tried before: their due time
    /// decides.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the maximum number of attempts per sink, instead of the topic's limit.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u16) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Sets the version of the payload's schema.
    #[must_use]
    pub fn schema_version(mut self, version: i32) -> Self {
        self.schema_version = Some(version);
        self
    }

    /// The message's id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The message's topic, which routes match.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The message's payload.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The message's headers.
    pub fn headers_ref(&self) -> &Headers {
        &self.headers
    }

    /// The message's ordering key.
    pub fn ordering_key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The message's idempotency key.
    pub fn idempotency(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }

    /// When the message becomes available; `None`: immediately.
    pub fn schedule(&self) -> Option<Schedule> {
        self.available
    }
}
