//! Asynchronous hooks: they run beside the relay, which never waits for them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use sendoff::Delivery;
use sendoff::store::DeadReason;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{DeadLetter, HookCounts, HookList, HookResult, Hooks};

/// How many calls may wait. More are dropped: a hook that hangs must not fill the memory.
const WAITING: usize = 10_000;
/// How long a relay that stops waits for the calls that are left.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// The same as [`Hooks`], for work that takes its time, such as a call of another service.
///
/// Calls are made one after the other, in order, on a task of their own. Up to 10 000 may wait; further ones are dropped and
/// counted, because delivering messages goes before telling about it. A relay that stops waits for those that are left for
/// up to 5 s. An error or a panic is logged and counted, and the next call is made.
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
///         page_somebody(&format!("{} messages are dead", dead.len())).await?;
///         Ok(())
///     }
/// }
/// # async fn page_somebody(_: &str) -> Result<(), std::io::Error> { Ok(()) }
/// ```
#[async_trait]
pub trait AsyncHooks: Send + Sync + 'static {
    /// A sink confirmed a message.
    ///
    /// # Errors
    /// Whatever is to be in the log.
    async fn sent(&self, delivery: &Arc<Delivery>, leg: &str) -> HookResult {
        let _ = (delivery, leg);
        Ok(())
    }

    /// An attempt failed, as [`Hooks::failed`].
    ///
    /// # Errors
    /// Whatever is to be in the log.
    async fn failed(
        &self,
        delivery: &Arc<Delivery>,
        leg: &str,
        attempts: u32,
        error: &str,
        delay: Duration,
    ) -> HookResult {
        let _ = (delivery, leg, attempts, error, delay);
        Ok(())
    }

    /// A message goes to the dead letters, as [`Hooks::dead_lettered`].
    ///
    /// # Errors
    /// Whatever is to be in the log.
    async fn dead_lettered(&self, delivery: &Arc<Delivery>, leg: &str, reason: DeadReason, error: &str) -> HookResult {
        let _ = (delivery, leg, reason, error);
        Ok(())
    }

    /// These messages are in the dead letters, as [`Hooks::dead_lettered_batch`].
    ///
    /// # Errors
    /// Whatever is to be in the log.
    async fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
        let _ = dead;
        Ok(())
    }
}

enum Call {
    Sent(Arc<Delivery>, String),
    Failed(Arc<Delivery>, String, u32, String, Duration),
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
            Self::Sent(delivery, leg) => hooks.sent(delivery, leg).await,
            Self::Failed(delivery, leg, attempts, error, delay) => {
                hooks.failed(delivery, leg, *attempts, error, *delay).await
            }
            Self::Dead(dead) => {
                let DeadLetter { delivery, leg, .. } = dead;
                hooks.dead_lettered(delivery, leg, dead.reason, &dead.error).await
            }
            Self::DeadBatch(dead) => hooks.dead_lettered_batch(dead).await,
        }
    }
}

/// Stands among the hooks that are called at once, and hands on.
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
    fn sent(&self, delivery: &Arc<Delivery>, leg: &str) -> HookResult {
        self.push(Call::Sent(delivery.clone(), leg.to_owned()))
    }

    fn failed(&self, delivery: &Arc<Delivery>, leg: &str, attempts: u32, error: &str, delay: Duration) -> HookResult {
        let (leg, error) = (leg.to_owned(), error.to_owned());
        self.push(Call::Failed(delivery.clone(), leg, attempts, error, delay))
    }

    fn dead_lettered(&self, delivery: &Arc<Delivery>, leg: &str, reason: DeadReason, error: &str) -> HookResult {
        self.push(Call::Dead(DeadLetter {
            delivery: delivery.clone(),
            leg: leg.into(),
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
    /// Starts the asynchronous hooks, each behind a queue. They end once all clones of the list are gone.
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
    /// Waits for the calls that are left, for a while.
    pub(crate) async fn end(self) {
        let deadline = tokio::time::Instant::now() + LAST_CALLS;
        for mut task in self.tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                tracing::warn!(
                    event = "hook_dropped",
                    "a hook is too slow: its last calls are left out"
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
