//! Where messages go: the [`Sink`] trait and its duties.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Delivery, Result};

/// Why a sink did not deliver, in words for an operator.
///
/// The text never holds a payload or a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    text: String,
    retry_after: Option<Duration>,
}

impl Reason {
    /// A reason in words.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            retry_after: None,
        }
    }

    /// The sink asked not to be tried again before so long.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// The words.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The delay that the sink asked for.
    pub fn asked_delay(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl<T: Into<String>> From<T> for Reason {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// What became of one message at one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The sink confirmed it.
    Delivered,
    /// It failed and may work later: charged as an attempt and retried.
    Temporary(Reason),
    /// It can never work: goes to the dead letters at once.
    Permanent(Reason),
    /// It may or may not have arrived: it is sent again with the same id as soon as the sink answers for other messages. No
    /// attempt is charged, unless that happened to this message before and the sink answered for others in between.
    Unknown(Reason),
    /// The sink as a whole is down: no attempt is charged, the message waits for the sink. It has not arrived, unless the far side
    /// has told that it stopped reading while the message was on its way.
    SinkDown(Reason),
    /// It was not tried, because it is too early: no attempt is charged, and it comes again after [`Reason::retry_after`].
    /// This says nothing about the sink. Messages behind it in the order of its key go on, as behind a scheduled one.
    NotYet(Reason),
}

/// What a sink knows better than the relay's settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// No more messages than this at once.
    pub batch: Option<usize>,
    /// A batch may take this long before its outcome is unknown, even if the settings say less.
    pub timeout: Option<Duration>,
}

/// A place that messages are delivered to.
///
/// # Duties
/// - [`publish`](Sink::publish) returns exactly one outcome a message, in the order of the batch.
/// - [`Outcome::Delivered`] only after the far side confirmed: a publisher confirm that was not returned as unroutable,
///   a stream's ack, a 2xx, a finished write.
/// - Every copy of a message carries [`Delivery::id`], so that consumers can deduplicate.
/// - No payload and no secret in any reason or log line.
/// - Cancel-safe: a relay that stops drops the future after its drain time; what was not confirmed is sent again later.
///
/// The relay never hands a sink two messages of one ordering key at the same time.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Delivers a batch.
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome>;

    /// What it knows better than the relay's settings: nothing, unless it says so.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Checks that the sink can be reached, without sending anything.
    ///
    /// # Errors
    /// What stands in the way, with advice.
    async fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Ends connections and flushes, once, when the relay stops.
    async fn close(&self) {}
}
