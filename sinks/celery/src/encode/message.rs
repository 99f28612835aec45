//! The message.

use crate::python::{Text, Value};
use crate::route::Destination;

/// A task on its way to a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct CeleryMessage {
    /// Celery's headers, in its order, then those of the task.
    pub headers: Vec<(Text, Value)>,
    /// What brokers call properties.
    pub properties: Properties,
    /// The arguments, and what is to be done after the task.
    pub body: Vec<u8>,
    /// Where it goes.
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
    /// What the body is.
    pub content_type: &'static str,
    /// How the body's text is written.
    pub content_encoding: &'static str,
    /// The task id.
    pub correlation_id: Text,
    /// The queue for the result.
    pub reply_to: Option<Text>,
    /// 1: may be kept in memory only; 2: must be written to disk.
    pub delivery_mode: u8,
    /// The priority.
    pub priority: u8,
    /// How many milliseconds are left until it expires; 0 if it has.
    pub expiration: Option<u64>,
    /// Further ones.
    pub extra: Vec<(Text, Value)>,
}
