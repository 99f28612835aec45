//! Asynchronous hooks: they run on their own tasks, and a working relay never waits for them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use sendoff::Outgoing;
use sendoff::store::DeadReason;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{DeadLetter, HookCounts, HookList, HookResult, Hooks};

/// How many calls may be queued. More are dropped: a hook that hangs must not fill the memory.
const WAITING: usize = 10_000;
/// How long a stopping relay waits for queued calls.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Asynchronous [`Hooks`], for slow work such as a call to another service.
///
/// Each value has its own task, which makes the calls one after the other, in order. Up to 10 000 calls can be queued;
/// further ones are dropped and counted, so that slow hooks do not delay deliveries. A stopping relay waits up to 5 s for
/// queued calls. An error or a panic is logged and counted, and the next call is made.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use sendoff_relay::{AsyncHooks, DeadLetter, HookResult};
///
/// struct Pager;
///
/// #[async_trait]
/// impl AsyncHooks for Pager {
///     async fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
///         page_on_call(&format!("{} messages are dead", dead.len())).await?;
///         Ok(())
///     }
/// }
/// # async fn page_on_call(_: &str) -> Result<(), std::io::Error> { Ok(()) }
/// ```
#[async_trait]
pub trait AsyncHooks: Send + Sync + 'static {
    /// Called after a sink confirmed a delivery.
    ///
    /// # Errors
    /// The error is logged and counted.
    async fn sent(&self, outgoing: &Arc<Outgoing>, sink: &str) -> HookResult {
        let _ = (outgoing, sink);
        Ok(())
    }

    /// Called after an attempt failed; see [`Hooks::failed`].
    ///
    /// # Errors
    /// The error is logged and counted.
    async fn failed(
        &self,
        outgoing: &Arc<Outgoing>,
        sink: &str,
        attempts: u32,
        error: &str,
        delay: Duration,
    ) -> HookResult {
        let _ = (outgoing, sink, attempts, error, delay);
        Ok(())
    }

    /// Called when a delivery becomes a dead letter; see [`Hooks::dead_lettered`].
    ///
    /// # Errors
    /// The error is logged and counted.
    async fn dead_lettered(&self, outgoing: &Arc<Outgoing>, sink: &str, reason: DeadReason, error: &str) -> HookResult {
        let _ = (outgoing, sink, reason, error);
        Ok(())
    }

    /// Called after a batch of dead letters was written; see [`Hooks::dead_lettered_batch`].
    ///
    /// # Errors
    /// The error is logged and counted.
    async fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
        let _ = dead;
        Ok(())
    }
}

enum Call {
    Sent(Arc<Outgoing>, String),
    Failed(Arc<Outgoing>, String, u32, String, Duration),
    Dead(DeadLetter),
    DeadBatch(Vec<DeadLetter>),
}

impl Call {
    fn name(&self) -> &'static str {
        match self {
            Self::Sent(..) => "sent",
            Self::Failed(..) => "failed",
            Self::Dead(_) => "dead_lettered",
            Self::DeadBatch(_) => "dead_lettered_batch",
        }
    }

    async fn make(&self, hooks: &dyn AsyncHooks) -> HookResult {
        match self {
            Self::Sent(outgoing, sink) => hooks.sent(outgoing, sink).await,
            Self::Failed(outgoing, sink, attempts, error, delay) => {
                hooks.failed(outgoing, sink, *attempts, error, *delay).await
            }
            Self::Dead(dead) => {
                let DeadLetter { outgoing, sink, .. } = dead;
                hooks.dead_lettered(outgoing, sink, dead.reason, &dead.error).await
            }
            Self::DeadBatch(dead) => hooks.dead_lettered_batch(dead).await,
        }
    }
}

/// A synchronous hook that queues the calls for an asynchronous one.
struct Queue {
    calls: mpsc::Sender<Call>,
    counts: HookCounts,
}

impl Queue {
    fn push(&self, call: Call) -> HookResult {
        let name = call.name();
        if self.calls.try_send(call).is_err() {
            self.counts.dropped(name, 1);
        }
        Ok(())
    }
}

impl Hooks for Queue {
    fn sent(&self, outgoing: &Arc<Outgoing>, sink: &str) -> HookResult {
        self.push(Call::Sent(outgoing.clone(), sink.to_owned()))
    }

    fn failed(&self, outgoing: &Arc<Outgoing>, sink: &str, attempts: u32, error: &str, delay: Duration) -> HookResult {
        let (sink, error) = (sink.to_owned(), error.to_owned());
        self.push(Call::Failed(outgoing.clone(), sink, attempts, error, delay))
    }

    fn dead_lettered(&self, outgoing: &Arc<Outgoing>, sink: &str, reason: DeadReason, error: &str) -> HookResult {
        self.push(Call::Dead(DeadLetter {
            outgoing: outgoing.clone(),
            sink: sink.into(),
            reason,
            error: error.to_owned(),
        }))
    }

    fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
        self.push(Call::DeadBatch(dead.to_vec()))
    }
}

/// The tasks of asynchronous hooks.
pub(crate) struct Beside {
    tasks: Vec<JoinHandle<()>>,
}

impl HookList {
    /// Starts the asynchronous hooks, each behind a queue. They end when all clones of the list are dropped.
    pub(crate) fn start(&mut self) -> Beside {
        let mut tasks = Vec::with_capacity(self.beside.len());
        for hooks in std::mem::take(&mut self.beside) {
            let (calls, queue) = mpsc::channel(WAITING);
            let counts = self.counts.clone();
            self.hooks.push(Arc::new(Queue {
                calls,
                counts: counts.clone(),
            }));
            tasks.push(tokio::spawn(make_calls(hooks, queue, counts)));
        }
        Beside { tasks }
    }
}

impl Beside {
    /// Waits for queued calls, for a limited time.
    pub(crate) async fn end(self) {
        let deadline = tokio::time::Instant::now() + LAST_CALLS;
        for mut task in self.tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                tracing::warn!(
                    event = "hook_dropped",
                    "asynchronous hook is too slow: its last calls were dropped when the relay stopped"
                );
                task.abort();
            }
        }
    }
}

async fn make_calls(hooks: Arc<dyn AsyncHooks>, mut queue: mpsc::Receiver<Call>, counts: HookCounts) {
    while let Some(call) = queue.recv().await {
        let ended = AssertUnwindSafe(call.make(hooks.as_ref())).catch_unwind().await.ok();
        counts.ended(call.name(), ended);
    }
}
