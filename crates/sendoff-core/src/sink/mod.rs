//! The [`Sink`] trait and its duties, and [`Middleware`] around it.

mod middleware;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Outgoing, Result};

pub use middleware::{Middleware, Next};

/// Why a sink did not deliver, as text for an operator.
///
/// The text never contains a payload or a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    text: String,
    retry_after: Option<Duration>,
}

impl Reason {
    /// A reason with the given text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            retry_after: None,
        }
    }

    /// Adds the delay before the next attempt that the sink asked for.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// The text of the reason.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The delay before the next attempt that the sink asked for.
    pub fn asked_delay(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl<T: Into<String>> From<T> for Reason {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// The outcome of one message at one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The sink confirmed the message.
    Delivered,
    /// The attempt failed and may succeed later: the message is charged an attempt and retried.
    Temporary(Reason),
    /// The message can never be delivered: it becomes a dead letter immediately.
    Permanent(Reason),
    /// The message may or may not have arrived: it is sent again with the same id as soon as the sink answers for other
    /// messages. No attempt is charged, unless this message had an unknown outcome before and the sink answered for
    /// others in between.
    Unknown(Reason),
    /// The whole sink is down: no attempt is charged, and the message waits for the sink. It has not arrived, unless
    /// the far side reported that it stopped reading while the message was being sent.
    SinkDown(Reason),
    /// The message was not tried because it is too early: no attempt is charged, and it is tried after
    /// [`Reason::retry_after`]. This says nothing about the sink. Later messages with the same key are delivered in the
    /// meantime, as behind a scheduled message.
    NotYet(Reason),
}

/// Limits of a sink that override the relay's settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of messages per batch.
    pub batch: Option<usize>,
    /// Minimum batch timeout. The relay uses the larger of this and its own `timeout`; after it, the outcome is
    /// unknown.
    pub timeout: Option<Duration>,
}

/// A system that messages are sent to.
///
/// # Duties
/// - [`publish`](Sink::publish) returns exactly one outcome per message, in the order of the batch.
/// - [`Outcome::Delivered`] only after the far side confirmed: a publisher confirm that was not returned as unroutable,
///   a stream's ack, a 2xx, a finished write.
/// - Every copy of a message has [`Outgoing::id`], so that consumers can deduplicate.
/// - No payload and no secret in any reason or log line.
/// - Cancel-safe: a stopping relay drops the future after its drain timeout; unconfirmed messages are sent again later.
///
/// The relay never hands a sink two messages of one ordering key at the same time.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Sends a batch of messages, and returns one outcome for each.
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome>;

    /// The limits of this sink that override the relay's settings; none by default.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Checks that the sink can be reached, without sending a message.
    ///
    /// # Errors
    /// Why the sink cannot be used, with advice.
    async fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Flushes and closes the sink's connections. The relay calls it once, when it stops.
    async fn close(&self) {}
}
