//! Publishing: each message goes to its handler, independent of the others.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use sendoff::sink::Limits;
use sendoff::{Outcome, Outgoing, Pattern, Sink};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::HandlersBuilder;
use crate::handler::Handler;

/// A sink that calls handlers of the application, selected by topic.
pub struct Handlers {
    registered: Vec<(Pattern, Arc<dyn Handler>)>,
    running: Arc<Semaphore>,
    concurrency: usize,
    timeout: Duration,
}

impl Handlers {
    /// Starts the registration of handlers.
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

    /// How many messages are handled at the same time.
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// How long a handler may take. The relay's timeout of a batch must be longer.
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
    /// A relay has four batches under way by default. So batches are small, so that no message of a batch waits for a
    /// permit, and the timeout leaves every handler its full time.
    fn limits(&self) -> Limits {
        Limits {
            batch: Some(self.concurrency.div_ceil(4)),
            timeout: Some(self.timeout * 2),
        }
    }

    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        // These outcomes stay for tasks that the runtime dropped because it shuts down.
        let mut outcomes =
            vec![
                Outcome::Unknown("the relay stopped while the handler ran (the message is handled again)".into());
                batch.len()
            ];
        // Separate tasks use all threads, and keep a blocking handler off the relay's task. The set cancels them when
        // this future is dropped.
        let mut tasks = JoinSet::new();
        for (at, outgoing) in batch.iter().enumerate() {
            match self.handler(&outgoing.topic) {
                None => outcomes[at] = no_handler(&outgoing.topic),
                Some(handler) => {
                    let (outgoing, running, timeout) = (Arc::clone(outgoing), Arc::clone(&self.running), self.timeout);
                    tasks.spawn(async move {
                        // The semaphore is never closed.
                        let _permit = running.acquire().await;
                        (at, run(handler, outgoing, timeout).await)
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

/// Runs one handler. Every result, including a panic, becomes the outcome of this one message.
async fn run(handler: Arc<dyn Handler>, outgoing: Arc<Outgoing>, limit: Duration) -> Outcome {
    let (id, topic) = (outgoing.id, outgoing.topic.clone());
    let handling = tokio::time::timeout(limit, async move { handler.handle(outgoing).await });
    match AssertUnwindSafe(handling).catch_unwind().await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_elapsed)) => Outcome::Unknown(
            format!("the handler did not finish within {limit:?} (make the handler faster, or raise the timeout of the handlers)")
                .into(),
        ),
        Err(_panic) => {
            tracing::error!(event = "handler_panicked", %id, topic, "handler panicked; the message is retried");
            Outcome::Temporary("the handler panicked (see the relay's standard error)".into())
        }
    }
}

fn no_handler(topic: &str) -> Outcome {
    Outcome::Permanent(
        format!(
            "no handler matches the topic {topic:?} (register one, or route the topic to another sink, then retry \
                 the message)"
        )
        .into(),
    )
}
