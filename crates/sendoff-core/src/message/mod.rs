//! What an application emits: a [`Message`], or a domain [`Event`] that becomes one.

mod event;
mod headers;
mod raw;

pub use event::Event;
pub use headers::Headers;
pub use raw::{Message, OnDuplicate, Schedule};

/// The content type of a message without one.
pub const JSON: &str = "application/json";
