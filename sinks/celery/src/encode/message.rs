//! A Celery message.

use crate::python::{Text, Value};
use crate::route::Destination;

/// A task encoded as a Celery message.
#[derive(Debug, Clone, PartialEq)]
pub struct CeleryMessage {
    /// The headers of the message: first Celery's, in Celery's order, then the task's own.
    pub headers: Vec<(Text, Value)>,
    /// The properties of the message.
    pub properties: Properties,
    /// The body of the message: arguments and callbacks.
    pub body: Vec<u8>,
    /// The address of the message on the broker.
    pub destination: Destination,
}

impl CeleryMessage {
    /// The header with this name.
    pub fn header(&self, name: &str) -> Option<&Value> {
        self.headers
            .iter()
            .find(|(key, _)| key.is(name))
            .map(|(_, value)| value)
    }
}

/// The properties of a Celery message.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// The content type of the body.
    pub content_type: &'static str,
    /// The encoding of the body.
    pub content_encoding: &'static str,
    /// The property `correlation_id`: the task id.
    pub correlation_id: Text,
    /// The queue for the result of the task.
    pub reply_to: Option<Text>,
    /// AMQP's delivery mode. 1: the message may be kept in memory only; 2: it must be written to disk.
    pub delivery_mode: u8,
    /// The priority of the message.
    pub priority: u8,
    /// The time until the message expires in milliseconds; 0 if it has expired.
    pub expiration: Option<u64>,
    /// Further properties from the task's options.
    pub extra: Vec<(Text, Value)>,
}
