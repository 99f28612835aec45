//! What a handler gets in addition to the payload.

use std::sync::Arc;
use std::time::SystemTime;

use sendoff::{Headers, Outgoing, Uuid};

/// The message that a handler receives: id, topic, key, headers and attempts.
#[derive(Debug, Clone)]
pub struct Context(Arc<Outgoing>);

impl Context {
    pub(crate) fn new(outgoing: Arc<Outgoing>) -> Self {
        Self(outgoing)
    }

    /// The message's id. It is the same for every attempt, so that a handler can recognise the message.
    pub fn id(&self) -> Uuid {
        self.0.id
    }

    /// The message's topic.
    pub fn topic(&self) -> &str {
        &self.0.topic
    }

    /// The message's ordering key.
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// The message's headers.
    pub fn headers(&self) -> &Headers {
        &self.0.headers
    }

    /// How many attempts were charged for this delivery before this one.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// When the emitting transaction began, by the database's clock.
    pub fn created_at(&self) -> SystemTime {
        self.0.created_at
    }

    /// The whole message, with the raw payload.
    pub fn outgoing(&self) -> &Outgoing {
        &self.0
    }
}
