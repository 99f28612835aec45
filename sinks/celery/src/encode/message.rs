//! A Celery message.

use crate::python::{Text, Value};
use crate::route::Destination;

/// The message of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct CeleryMessage {
    /// Celery's headers, in its order, then those of the task.
    pub headers: Vec<(Text, Value)>,
    /// The properties.
    pub properties: Properties,
    /// The arguments and callbacks.
    pub body: Vec<u8>,
    /// Where the message is sent.
    pub destination: Destination,
}

impl CeleryMessage {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&Value> {
        self.headers
            .iter()
            .find(|(key, _)| key.is(name))
            .map(|(_, value)| value)
    }
}

/// The properties of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// The content type of the body.
    pub content_type: &'static str,
    /// The encoding of the body.
    pub content_encoding: &'static str,
    /// The task id.
    pub correlation_id: Text,
    /// The queue for the result.
    pub reply_to: Option<Text>,
    /// 1: may be kept in memory only; 2: must be written to disk.
    pub delivery_mode: u8,
    /// The priority.
    pub priority: u8,
    /// Milliseconds until it expires; 0 if it has expired.
    pub expiration: Option<u64>,
    /// Further properties.
    pub extra: Vec<(Text, Value)>,
}
