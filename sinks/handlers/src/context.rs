//! What a handler gets in addition to the payload.

use std::sync::Arc;
use std::time::SystemTime;

use sendoff::{Headers, Outgoing, Uuid};

/// The message of a handler.
#[derive(Debug, Clone)]
pub struct Context(Arc<Outgoing>);

impl Context {
    pub(crate) fn new(outgoing: Arc<Outgoing>) -> Self {
        Self(outgoing)
    }

    /// Its id: the same for every attempt, so that a handler can recognise it.
    pub fn id(&self) -> Uuid {
        self.0.id
    }

    /// Its topic.
    pub fn topic(&self) -> &str {
        &self.0.topic
    }

    /// Its ordering key.
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// Its headers.
    pub fn headers(&self) -> &Headers {
        &self.0.headers
    }

    /// How many attempts were charged before this one.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// When its transaction began, by the database's clock.
    pub fn created_at(&self) -> SystemTime {
        self.0.created_at
    }

    /// The whole message, with the raw payload.
    pub fn outgoing(&self) -> &Outgoing {
        &self.0
    }
}
