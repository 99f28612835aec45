//! The result of an emit.

use std::error::Error as StdError;
use std::{fmt, slice, vec};

use uuid::Uuid;

use crate::{Error, ErrorKind, Message};

/// The result of emitting a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a duplicate stores nothing: check `is_duplicate()`, or make a duplicate an error with \
              `.on_duplicate(OnDuplicate::Fail)`; write `let _ =` for a message that cannot be a duplicate"]
#[non_exhaustive]
pub enum Emitted {
    /// The message is stored, and is delivered once the transaction commits.
    Stored {
        /// The id of the message.
        id: Uuid,
    },
    /// Nothing was stored: the message's idempotency key was used within the deduplication window.
    Duplicate {
        /// The id of the message that used the idempotency key first.
        first: Uuid,
    },
}

impl Emitted {
    /// The id of the stored message. If the message is a duplicate, this is the id of the message that used the idempotency
    /// key first.
    pub fn id(self) -> Uuid {
        match self {
            Self::Stored { id } => id,
            Self::Duplicate { first } => first,
        }
    }

    /// Whether the message was a duplicate.
    pub fn is_duplicate(self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }
}

/// The results of emitting many messages, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a duplicate stores nothing: check `has_duplicates()`, or make duplicates an error with \
              `.on_duplicate(OnDuplicate::Fail)`; write `let _ =` for messages that cannot be duplicates"]
pub struct EmittedMany(Vec<Emitted>);

impl EmittedMany {
    pub(super) fn new(emitted: Vec<Emitted>) -> Self {
        Self(emitted)
    }

    /// Whether at least one message is a duplicate, and so was not stored.
    pub fn has_duplicates(&self) -> bool {
        self.0.iter().any(|emitted| emitted.is_duplicate())
    }

    /// The results, in the order of the messages.
    pub fn as_slice(&self) -> &[Emitted] {
        &self.0
    }

    /// The results, in the order of the messages.
    pub fn into_vec(self) -> Vec<Emitted> {
        self.0
    }

    /// The results, in the order of the messages.
    pub fn iter(&self) -> slice::Iter<'_, Emitted> {
        self.0.iter()
    }

    pub(super) fn into_only(mut self) -> Option<Emitted> {
        self.0.pop()
    }
}

impl From<EmittedMany> for Vec<Emitted> {
    fn from(many: EmittedMany) -> Self {
        many.0
    }
}

impl IntoIterator for EmittedMany {
    type Item = Emitted;
    type IntoIter = vec::IntoIter<Emitted>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a EmittedMany {
    type Item = &'a Emitted;
    type IntoIter = slice::Iter<'a, Emitted>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The result for every message of an emit that failed with [`ErrorKind::Duplicate`]. It is the source of that error.
///
/// The messages that are no duplicates are written. The transaction is still usable: commit it to send them, or roll it
/// back.
///
/// ```
/// use sendoff::emit::Duplicates;
/// use sendoff::{Error, Uuid};
///
/// /// The id of the first message with the key, if a single emit failed because of it.
/// fn first(error: &Error) -> Option<Uuid> {
///     Duplicates::of(error)?.emitted().first().map(|emitted| emitted.id())
/// }
/// ```
#[derive(Debug)]
pub struct Duplicates(EmittedMany);

impl Duplicates {
    /// The results from an error of an emit; `None` if the error is not about duplicates.
    pub fn of(error: &Error) -> Option<&Self> {
        error.source()?.downcast_ref()
    }

    /// The results, in the order of the messages.
    pub fn emitted(&self) -> &[Emitted] {
        self.0.as_slice()
    }
}

impl fmt::Display for Duplicates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = self.0.iter().filter(|emitted| !emitted.is_duplicate()).count();
        let all = self.0.as_slice().len();
        write!(
            f,
            "{written} of {all} messages of the call are written in the transaction"
        )
    }
}

impl StdError for Duplicates {}

/// The error for the duplicate `message`, of which `first` holds the idempotency key. `emitted` has the results of all
/// messages of the call.
pub(super) fn duplicate(message: &Message, first: Uuid, emitted: EmittedMany) -> Error {
    let (topic, key) = (&message.topic, message.idempotency_key.as_deref().unwrap_or_default());
    let (what, ways_out) = if message.has_derived_key {
        (
            format!("the event {topic:?} of {key:?} was already emitted"),
            "if the event may repeat, set a key of its own with .idempotency_key(..), or none with .repeatable(); to \
             get a report instead of this error, use .on_duplicate(OnDuplicate::Report)",
        )
    } else {
        (
            format!("{topic:?} with the idempotency key {key:?} was already emitted"),
            "treat the message as emitted, or use another key",
        )
    };
    let what_is_written = match emitted.as_slice().len() {
        1 => "nothing was stored".to_owned(),
        _ => Duplicates(emitted.clone()).to_string(),
    };
    let why = if message.has_derived_key {
        format!("message {first} holds the key of its aggregate within the deduplication window")
    } else {
        format!("message {first} holds the key")
    };
    Error::new(ErrorKind::Duplicate, what)
        .because(why)
        .next_step(format!(
            "{what_is_written}, and the transaction is still usable; {ways_out}"
        ))
        .with_source(Duplicates(emitted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;

    fn text(message: Message, others: usize) -> String {
        let first = Uuid::from_u128(1);
        let mut emitted = vec![Emitted::Stored { id: Uuid::nil() }; others];
        emitted.push(Emitted::Duplicate { first });
        let error = duplicate(&message, first, EmittedMany::new(emitted));
        let duplicates = Duplicates::of(&error).unwrap();
        assert_eq!(duplicates.emitted()[others].id(), first);
        error.to_string()
    }

    #[test]
    fn a_derived_key_names_the_event_the_first_id_and_the_ways_out() {
        let text = text(Event::new("order", 42, "order.updated").into(), 0);
        assert_eq!(
            text,
            "the event \"order.updated\" of \"order:42\" was already emitted: message \
             00000000-0000-0000-0000-000000000001 holds the key of its aggregate within the deduplication window \
             (nothing was stored, and the transaction is still usable; if the event may repeat, set a key of its own \
             with .idempotency_key(..), or none with .repeatable(); to get a report instead of this error, use \
             .on_duplicate(OnDuplicate::Report))"
        );
    }

    #[test]
    fn a_duplicate_among_many_says_how_many_are_written() {
        let message = Message::from(Event::new("order", 42, "order.paid").idempotency_key("request-9"));
        let text = text(message, 2);
        assert!(
            text.contains("\"order.paid\" with the idempotency key \"request-9\""),
            "{text}"
        );
        assert!(
            text.contains("(2 of 3 messages of the call are written in the transaction, and"),
            "{text}"
        );
        assert!(!text.contains("repeatable"), "{text}");
    }
}
