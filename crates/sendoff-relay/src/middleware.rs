//! Middleware: code of the application around publishing.

use std::sync::Arc;

use async_trait::async_trait;
use sendoff::sink::Limits;
use sendoff::{Outcome, Outgoing, Result, Sink};

/// Wraps the publishing to every sink: to measure, to change or stop messages, or to fake failures in a test.
///
/// # Duties
/// Those of [`Sink::publish`]: one outcome per message, in the order of the batch. A message that is not passed to
/// [`Next::publish`] needs an outcome too. Only a confirmed message may have the outcome delivered. A panic counts as a
/// panic of the sink.
///
/// The middleware that is added first is the outermost.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use sendoff::{Outcome, Outgoing};
/// use sendoff_relay::{Middleware, Next};
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
    wrapped: &'a Wrapped,
    rest: &'a [Arc<dyn Middleware>],
}

impl Next<'_> {
    /// The name of the sink.
    pub fn sink(&self) -> &str {
        &self.wrapped.name
    }

    /// Passes a batch to the rest of the chain. An empty batch does not reach the sink.
    pub async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        if batch.is_empty() {
            return Vec::new();
        }
        match self.rest {
            [] => self.wrapped.sink.publish(batch).await,
            [first, rest @ ..] => {
                let next = Next {
                    wrapped: self.wrapped,
                    rest,
                };
                first.publish(batch, next).await
            }
        }
    }
}

/// A sink with its middleware.
struct Wrapped {
    name: String,
    sink: Arc<dyn Sink>,
    middleware: Arc<[Arc<dyn Middleware>]>,
}

#[async_trait]
impl Sink for Wrapped {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let whole = Next {
            wrapped: self,
            rest: &self.middleware,
        };
        whole.publish(batch).await
    }

    fn limits(&self) -> Limits {
        self.sink.limits()
    }

    async fn check(&self) -> Result<()> {
        self.sink.check().await
    }

    async fn close(&self) {
        self.sink.close().await;
    }
}

/// Wraps a sink in middleware.
pub(crate) fn wrapped(name: &str, sink: Arc<dyn Sink>, middleware: &Arc<[Arc<dyn Middleware>]>) -> Arc<dyn Sink> {
    if middleware.is_empty() {
        return sink;
    }
    Arc::new(Wrapped {
        name: name.to_owned(),
        sink,
        middleware: middleware.clone(),
    })
}
