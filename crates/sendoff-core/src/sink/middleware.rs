//! Middleware: code of the application around publishing.

use std::sync::Arc;

use super::Sink;
use crate::{Outcome, Outgoing};
use async_trait::async_trait;

/// Wraps the publishing to every sink: to trace, to change or stop messages, or to fake failures in a test.
///
/// # Duties
/// Those of [`Sink::publish`]: one outcome per message, in the order of the batch. A message that is not passed to
/// [`Next::publish`] needs an outcome too. Only a confirmed message may have the outcome delivered. A panic counts as a
/// panic of the sink; code that only watches must contain its panics.
///
/// # What it sees
/// The middleware that is added first is the outermost. [`Next::publish`] returns one outcome per message, even if the
/// sink hangs or miscounts. The future is dropped when the relay abandons the attempt, because its lease ended, and when
/// the sink panics with a batch of several messages: the relay then sends each of them alone.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use sendoff::{Outcome, Outgoing};
/// use sendoff::sink::{Middleware, Next};
///
/// /// Never sends test orders.
/// struct NoTestOrders;
///
/// #[async_trait]
/// impl Middleware for NoTestOrders {
///     async fn publish(&self, batch: &[Arc<Outgoing>], next: Next<'_>) -> Vec<Outcome> {
///         let is_test = |outgoing: &Arc<Outgoing>| outgoing.topic.starts_with("test.");
///         let real: Vec<_> = batch.iter().filter(|outgoing| !is_test(outgoing)).cloned().collect();
///         let mut outcomes = next.publish(&real).await.into_iter();
///         let outcome = |outgoing| {
///             if is_test(outgoing) {
///                 Outcome::Permanent("test orders are not sent".into())
///             } else {
///                 outcomes.next().unwrap_or_else(|| Outcome::Unknown("the sink returned no outcome".into()))
///             }
///         };
///         batch.iter().map(outcome).collect()
///     }
/// }
/// ```
#[async_trait]
pub trait Middleware: Send + Sync + 'static {
    /// Publishes a batch. Most middleware calls [`Next::publish`].
    async fn publish(&self, batch: &[Arc<Outgoing>], next: Next<'_>) -> Vec<Outcome>;
}

/// The rest of the chain after a [`Middleware`]: further middleware, then the sink.
pub struct Next<'a> {
    name: &'a str,
    sink: &'a dyn Sink,
    rest: &'a [Arc<dyn Middleware>],
}

impl<'a> Next<'a> {
    /// The whole chain of a sink. The relay builds it; elsewhere it serves tests of a middleware.
    pub fn new(name: &'a str, sink: &'a dyn Sink, chain: &'a [Arc<dyn Middleware>]) -> Self {
        Self {
            name,
            sink,
            rest: chain,
        }
    }

    /// The sink's name.
    pub fn sink(&self) -> &str {
        self.name
    }

    /// Passes a batch to the rest of the chain. An empty batch does not reach the sink.
    pub async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        if batch.is_empty() {
            return Vec::new();
        }
        match self.rest {
            [] => self.sink.publish(batch).await,
            [first, rest @ ..] => first.publish(batch, Next { rest, ..*self }).await,
        }
    }
}
