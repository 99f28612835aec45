//! Domain events.

use bytes::Bytes;
use serde::Serialize;

use super::{Message, OnDuplicate};
use crate::Result;

/// Something that happened to an aggregate; it becomes a [`Message`].
///
/// The ordering key and the idempotency key both default to `aggregate_type:aggregate_id`: at most one event of a type
/// for an aggregate within the deduplication window, in order. A second one fails with [`crate::ErrorKind::Duplicate`] and
/// leaves the transaction usable. Events that may repeat (`order.updated`) set their own
/// [idempotency key](Event::idempotency_key) or have [none](Event::repeatable).
///
/// ```
/// use sendoff::{Event, Message};
///
/// let message: Message = Event::new("order", 42, "order.placed").into();
/// assert_eq!(message.payload().as_ref(), b"{}");
/// assert_eq!(message.ordering_key(), Some("order:42"));
/// assert_eq!(message.idempotency(), Some("order:42"));
/// ```
#[derive(Debug, Clone)]
pub struct Event {
    message: Message,
}

impl Event {
    /// An event with the payload `{}`.
    pub fn new(aggregate_type: impl Into<String>, aggregate_id: impl ToString, event_type: impl Into<String>) -> Self {
        let (aggregate_type, aggregate_id) = (aggregate_type.into(), aggregate_id.to_string());
        let identity = format!("{aggregate_type}:{aggregate_id}");
        let mut message = Message::with_payload(event_type, Bytes::from_static(b"{}"));
        message.key = Some(identity.clone());
        message.idempotency_key = Some(identity);
        message.has_derived_key = true;
        message.aggregate_type = Some(aggregate_type);
        message.aggregate_id = Some(aggregate_id);
        Self { message }
    }

    /// Sets the payload, as JSON. `None` and `()` become `{}`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when the value does not serialise.
    pub fn payload(mut self, payload: &(impl Serialize + ?Sized)) -> Result<Self> {
        let encoded = Message::json(self.message.topic.as_str(), payload)?.payload;
        self.message.payload = if encoded.as_ref() == b"null" {
            Bytes::from_static(b"{}")
        } else {
            encoded
        };
        Ok(self)
    }

    /// Sets an ordering key, instead of the aggregate.
    #[must_use]
    pub fn key(mut self, key: impl ToString) -> Self {
        self.message.key = Some(key.to_string());
        self
    }

    /// Removes the ordering key: events of this aggregate have no order.
    #[must_use]
    pub fn unordered(mut self) -> Self {
        self.message.key = None;
        self
    }

    /// Sets an idempotency key that the application chooses, such as the id of a request. A duplicate with this key is
    /// reported, unless [`Event::on_duplicate`] says otherwise.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl ToString) -> Self {
        self.message = self.message.idempotency_key(key);
        self
    }

    /// Removes the idempotency key: this event may repeat.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.message = self.message.repeatable();
        self
    }

    /// Chooses whether a duplicate is reported or an error. Without a choice, a duplicate with the derived key is an
    /// error, and a duplicate with an own key is reported.
    #[must_use]
    pub fn on_duplicate(mut self, choice: OnDuplicate) -> Self {
        self.message = self.message.on_duplicate(choice);
        self
    }

    /// Sets the version of the payload's schema.
    #[must_use]
    pub fn schema_version(mut self, version: i32) -> Self {
        self.message.schema_version = Some(version);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.message.headers.insert(name, value);
        self
    }
}

impl From<Event> for Message {
    fn from(event: Event) -> Self {
        event.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_payload_is_an_empty_object() {
        let event = Event::new("order", 1, "order.placed").payload(&None::<u8>).unwrap();
        assert_eq!(Message::from(event).payload().as_ref(), b"{}");
    }

    #[test]
    fn idempotency_can_be_custom_or_off() {
        let custom: Message = Event::new("order", 1, "order.placed").idempotency_key("req-9").into();
        assert_eq!(custom.idempotency(), Some("req-9"));
        let off: Message = Event::new("order", 1, "order.placed").repeatable().into();
        assert_eq!(off.idempotency(), None);
        assert_eq!(off.ordering_key(), Some("order:1"));
    }

    #[test]
    fn only_a_derived_key_fails_unless_the_application_chooses() {
        let event = || Event::new("order", 1, "order.placed");
        let fails = |event: Event| Message::from(event).fails_as_duplicate();
        assert!(fails(event()));
        assert!(!fails(event().on_duplicate(OnDuplicate::Report)));
        assert!(!fails(event().idempotency_key("req-9")));
        assert!(fails(event().idempotency_key("req-9").on_duplicate(OnDuplicate::Fail)));
        assert!(fails(event().on_duplicate(OnDuplicate::Fail).idempotency_key("req-9")));
        assert!(!fails(event().repeatable()));
        assert!(!Message::from(event()).idempotency_key("req-9").fails_as_duplicate());
    }
}
