//! What a handler learns about a message beside its payload.

use std::sync::Arc;
use std::time::SystemTime;

use sendoff::{Delivery, Headers, Uuid};

/// The message that a handler works on.
#[derive(Debug, Clone)]
pub struct Context(Arc<Delivery>);

impl Context {
    pub(crate) fn new(delivery: Arc<Delivery>) -> Self {
        Self(delivery)
    }

    /// Its id: the same every time it is handed over, so that it can be recognised.
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

    /// How many attempts at it failed before this one.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// When its transaction began, by the database's clock.
    pub fn created_at(&self) -> SystemTime {
        self.0.created_at
    }

    /// All of it, with the payload's own bytes.
    pub fn delivery(&self) -> &Delivery {
        &self.0
    }
}
