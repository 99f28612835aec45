//! Publishing: each message to its handler, each for itself.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use sendoff::sink::Limits;
use sendoff::{Delivery, Outcome, Pattern, Sink};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::HandlersBuilder;
use crate::handler::Handler;

/// The sink: handlers by topic.
pub struct Handlers {
    registered: Vec<(Pattern, Arc<dyn Handler>)>,
    running: Arc<Semaphore>,
    concurrency: usize,
    timeout: Duration,
}

impl Handlers {
    /// Begins to register handlers.
    pub fn builder() -> HandlersBuilder {
        HandlersBuilder::default()
    }

    pub(crate) fn new(registered: Vec<(Pattern, Arc<dyn Handler>)>, concurrency: usize, timeout: Duration) -> Self {
        Self {
            registered,
            running: Arc::new(Semaphore::new(concurrency)),
            concurrency,
            timeout,
        }
    }

    /// How many messages are handled at the same time: the right size for the batches that a relay hands over.
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// How long a handler may take. A relay has to wait longer than this for a batch.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    fn handler(&self, topic: &str) -> Option<Arc<dyn Handler>> {
        let fitting = self.registered.iter().find(|(pattern, _)| pattern.matches(topic));
        fitting.map(|(_, handler)| Arc::clone(handler))
    }
}

#[async_trait]
impl Sink for Handlers {
    /// A relay has four batches under way unless it is told otherwise: small ones, so that no message of a batch has to
    /// wait for its turn, and with time for every handler to use up its own.
    fn limits(&self) -> Limits {
        Limits {
            batch: Some(self.concurrency.div_ceil(4)),
            timeout: Some(self.timeout * 2),
        }
    }

    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        // What stays of these is that of a task which the runtime dropped because it shuts down.
        let mut outcomes = vec![Outcome::Unknown("the process stopped while the handler ran".into()); batch.len()];
        // Tasks of their own use all threads, and keep a handler that blocks its thread off the relay's. The set ends
        // them when this future is dropped.
        let mut tasks = JoinSet::new();
        for (at, delivery) in batch.iter().enumerate() {
            match self.handler(&delivery.topic) {
                None => outcomes[at] = no_handler(&delivery.topic),
                Some(handler) => {
                    let (delivery, running, timeout) = (Arc::clone(delivery), Arc::clone(&self.running), self.timeout);
                    tasks.spawn(async move {
                        // The semaphore is never closed.
                        let _permit = running.acquire().await;
                        (at, run(handler, delivery, timeout).await)
                    });
                }
            }
        }
        while let Some(joined) = tasks.join_next().await {
            if let Ok((at, outcome)) = joined {
                outcomes[at] = outcome;
            }
        }
        outcomes
    }
}

/// Runs one handler. Whatever it does, an outcome for this one message is all that comes of it.
async fn run(handler: Arc<dyn Handler>, delivery: Arc<Delivery>, limit: Duration) -> Outcome {
    let (id, topic) = (delivery.id, delivery.topic.clone());
    let handling = tokio::time::timeout(limit, async move { handler.handle(delivery).await });
    match AssertUnwindSafe(handling).catch_unwind().await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_elapsed)) => Outcome::Unknown(
            format!("the handler did not finish within {limit:?} (make it faster, or raise the handlers' timeout)")
                .into(),
        ),
        Err(_panic) => {
            tracing::error!(event = "handler_panicked", %id, topic, "a handler panicked");
            Outcome::Temporary("the handler panicked (its words are on standard error of the relay)".into())
        }
    }
}

fn no_handler(topic: &str) -> Outcome {
    Outcome::Permanent(
        format!("no handler takes the topic {topic:?} (register one, or route the topic elsewhere, then retry it)")
            .into(),
    )
}
