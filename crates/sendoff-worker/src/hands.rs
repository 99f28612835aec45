//! The running attempts.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use sendoff::store::{Claim, Job};
use tokio::task::{AbortHandle, JoinSet};

use crate::Failure;

/// An attempt that has ended.
pub(crate) type Ended = (Arc<Job>, Result<(), Failure>);

/// The running attempts, each on its own task.
#[derive(Default)]
pub(crate) struct Hands {
    tasks: JoinSet<Ended>,
    running: HashMap<Claim, AbortHandle>,
}

impl Hands {
    pub(crate) fn len(&self) -> usize {
        self.running.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        self.running.keys().copied()
    }

    pub(crate) fn start(&mut self, job: Arc<Job>, work: impl Future<Output = Result<(), Failure>> + Send + 'static) {
        let claim = job.claim;
        let task = async move {
            let ended = AssertUnwindSafe(work).catch_unwind().await;
            (
                job,
                ended.unwrap_or_else(|panic| Err(Failure::Transient(words_of(&*panic)))),
            )
        };
        self.running.insert(claim, self.tasks.spawn(task));
    }

    /// Drops the work on a job. Returns whether there was any.
    pub(crate) fn drop_work(&mut self, claim: Claim) -> bool {
        let running = self.running.remove(&claim);
        if let Some(task) = &running {
            task.abort();
        }
        running.is_some()
    }

    /// The next attempt that ends, and all others that have ended by then. Empty when only dropped work has ended.
    pub(crate) async fn ended(&mut self) -> Vec<Ended> {
        let mut ended = Vec::new();
        let mut next = self.tasks.join_next().await;
        while let Some(task) = next {
            // A dropped attempt may still have ended.
            ended.extend(task.ok().filter(|(job, _)| self.running.remove(&job.claim).is_some()));
            next = self.tasks.try_join_next();
        }
        ended
    }
}

/// The message of a panic.
pub(crate) fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", words.unwrap_or("no message"))
}
