//! Hooks run on their own tasks, behind queues: a working relay never waits for them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use sendoff::Outgoing;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{DeadLetter, HookCounts, HookResult, Hooks};

/// How many calls may be queued. More are dropped: a hook that hangs must not fill the memory.
const QUEUED: usize = 10_000;
/// How long a stopping relay waits for queued calls.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// One call of a hook.
#[derive(Clone)]
pub(crate) enum Call {
    Sent(Arc<Outgoing>, Arc<str>),
    Failed(Arc<Outgoing>, Arc<str>, u32, Arc<str>, Duration),
    Dead(DeadLetter),
    DeadBatch(Arc<[DeadLetter]>),
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

    async fn make(&self, hooks: &dyn Hooks) -> HookResult {
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

/// The queue of one value of hooks. Its task ends when all clones of it are dropped.
#[derive(Clone)]
pub(super) struct Queue {
    calls: mpsc::Sender<Call>,
}

impl Queue {
    pub(super) fn start(hooks: Arc<dyn Hooks>, counts: HookCounts) -> (Self, JoinHandle<()>) {
        let (calls, queued) = mpsc::channel(QUEUED);
        (Self { calls }, tokio::spawn(make_calls(hooks, queued, counts)))
    }

    pub(super) fn push(&self, call: Call, counts: &HookCounts) {
        let name = call.name();
        if self.calls.try_send(call).is_err() {
            counts.dropped(name, 1);
        }
    }
}

async fn make_calls(hooks: Arc<dyn Hooks>, mut queued: mpsc::Receiver<Call>, counts: HookCounts) {
    while let Some(call) = queued.recv().await {
        let ended = AssertUnwindSafe(call.make(hooks.as_ref())).catch_unwind().await.ok();
        counts.ended(call.name(), ended);
    }
}

/// The tasks of the hooks of a relay.
pub(crate) struct Queues(pub(super) Vec<JoinHandle<()>>);

impl Queues {
    /// Waits for queued calls, for a limited time.
    pub(crate) async fn end(self) {
        let deadline = tokio::time::Instant::now() + LAST_CALLS;
        for mut task in self.0 {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                tracing::warn!(
                    event = "hook_dropped",
                    "a hook is too slow: its last calls were dropped"
                );
                task.abort();
            }
        }
    }
}
