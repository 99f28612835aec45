//! Code of the application around publishing.

use std::sync::Arc;

use async_trait::async_trait;
use sendoff::sink::Limits;
use sendoff::{Delivery, Outcome, Result, Sink};

/// Stands between the relay and every sink: to measure, to alter or hold back messages, to fake failures in a test.
///
/// # Duties
/// Those of [`Sink::publish`]: one outcome a message, in the order of the batch. A message that is not handed to
/// [`Next::publish`] needs an outcome all the same, and one that was not confirmed must not be called delivered. A panic
/// counts as one of the sink.
///
/// The first one that is added to a relay is the outermost.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use sendoff::{Delivery, Outcome};
/// use sendoff_relay::{Middleware, Next};
///
/// /// Keeps test orders from ever leaving.
/// struct NoTestOrders;
///
/// #[async_trait]
/// impl Middleware for NoTestOrders {
///     async fn publish(&self, batch: &[Arc<Delivery>], next: Next<'_>) -> Vec<Outcome> {
///         let is_test = |delivery: &Arc<Delivery>| delivery.topic.starts_with("test.");
///         let real: Vec<_> = batch.iter().filter(|delivery| !is_test(delivery)).cloned().collect();
///         let mut outcomes = next.publish(&real).await.into_iter();
///         let outcome = |delivery| {
///             if is_test(delivery) {
///                 Outcome::Permanent("test orders stay here".into())
///             } else {
///                 outcomes.next().unwrap_or_else(|| Outcome::Unknown("the sink left it out".into()))
///             }
///         };
///         batch.iter().map(outcome).collect()
///     }
/// }
/// ```
#[async_trait]
pub trait Middleware: Send + Sync + 'static {
    /// Delivers a batch, by [`Next::publish`] as a rule.
    async fn publish(&self, batch: &[Arc<Delivery>], next: Next<'_>) -> Vec<Outcome>;
}

/// What is behind a [`Middleware`]: others, and then the sink.
pub struct Next<'a> {
    wrapped: &'a Wrapped,
    rest: &'a [Arc<dyn Middleware>],
}

impl Next<'_> {
    /// The sink's name.
    pub fn sink(&self) -> &str {
        &self.wrapped.name
    }

    /// Hands a batch on. An empty one is not handed to the sink.
    pub async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
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

/// A sink with what stands before it.
struct Wrapped {
    name: String,
    sink: Arc<dyn Sink>,
    middleware: Arc<[Arc<dyn Middleware>]>,
}

#[async_trait]
impl Sink for Wrapped {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
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

/// Puts middleware before a sink.
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
