//! Guards the relay against what a sink and its middleware may do: hang, panic, or answer incorrectly.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use sendoff::sink::{Limits, Middleware, Next};
use sendoff::{Outcome, Outgoing, Result, Sink};
use tokio::time::timeout;

/// How much longer than its sink a chain of middleware may take. Without it, the middleware would not see the outcome
/// of a sink that hangs.
pub(crate) const MIDDLEWARE_TIME: Duration = Duration::from_secs(1);

/// Publishes with a time limit, and returns one outcome per message whatever the sink does.
pub(crate) async fn call(sink: &dyn Sink, batch: &[Arc<Outgoing>], limit: Duration) -> Vec<Outcome> {
    match attempt(sink, batch, limit).await {
        Ok(outcomes) => outcomes,
        // One message may cause the panic: when it is sent alone, no other message is affected.
        Err(_) if batch.len() > 1 => {
            let mut outcomes = Vec::with_capacity(batch.len());
            for outgoing in batch {
                outcomes.extend(Box::pin(call(sink, std::slice::from_ref(outgoing), limit)).await);
            }
            outcomes
        }
        Err(_) => vec![panicked()],
    }
}

/// # Errors
/// What the sink panicked with.
async fn attempt(
    sink: &dyn Sink,
    batch: &[Arc<Outgoing>],
    limit: Duration,
) -> std::result::Result<Vec<Outcome>, Box<dyn Any + Send>> {
    let Ok(ended) = timeout(limit, AssertUnwindSafe(sink.publish(batch)).catch_unwind()).await else {
        let text = format!("the sink gave no answer within {limit:?}");
        return Ok(batch.iter().map(|_| Outcome::Unknown(text.clone().into())).collect());
    };
    let outcomes = ended?;
    if outcomes.len() == batch.len() {
        return Ok(outcomes);
    }
    let text = format!("the sink answered for {} of {} messages", outcomes.len(), batch.len());
    Ok(batch.iter().map(|_| Outcome::Temporary(text.clone().into())).collect())
}

/// It may have arrived before. But this is a failure of the message, not an outage: the attempt is charged.
fn panicked() -> Outcome {
    Outcome::Temporary("the sink panicked".into())
}

/// A sink with its middleware.
struct Wrapped {
    name: String,
    inner: Inner,
    middleware: Arc<[Arc<dyn Middleware>]>,
}

/// The sink as its middleware sees it: with an outcome per message.
struct Inner {
    sink: Arc<dyn Sink>,
    limit: Duration,
}

#[async_trait]
impl Sink for Inner {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        match attempt(self.sink.as_ref(), batch, self.limit).await {
            Ok(outcomes) => outcomes,
            // The relay sends each message alone, through the whole chain.
            Err(panic) if batch.len() > 1 => resume_unwind(panic),
            Err(_) => vec![panicked()],
        }
    }
}

#[async_trait]
impl Sink for Wrapped {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        Next::new(&self.name, &self.inner, &self.middleware)
            .publish(batch)
            .await
    }

    fn limits(&self) -> Limits {
        self.inner.sink.limits()
    }

    async fn check(&self) -> Result<()> {
        self.inner.sink.check().await
    }

    async fn close(&self) {
        self.inner.sink.close().await;
    }
}

/// Wraps a sink in middleware. `limit` is extended by the time that the middleware has.
pub(crate) fn wrapped(
    name: &str,
    sink: Arc<dyn Sink>,
    middleware: &Arc<[Arc<dyn Middleware>]>,
    limit: &mut Duration,
) -> Arc<dyn Sink> {
    if middleware.is_empty() {
        return sink;
    }
    let inner = Inner { sink, limit: *limit };
    *limit = limit.saturating_add(MIDDLEWARE_TIME);
    Arc::new(Wrapped {
        name: name.to_owned(),
        inner,
        middleware: middleware.clone(),
    })
}
