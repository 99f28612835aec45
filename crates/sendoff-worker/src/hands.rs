//! What is being worked on.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use sendoff::store::{Claim, Item};
use tokio::task::{AbortHandle, JoinSet};

use crate::Failure;

/// An attempt that has ended.
pub(crate) type Ended = (Arc<Item>, Result<(), Failure>);

/// The attempts that run, each on a task of its own.
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

    pub(crate) fn start(&mut self, item: Arc<Item>, work: impl Future<Output = Result<(), Failure>> + Send + 'static) {
        let claim = item.claim;
        let task = async move {
            let ended = AssertUnwindSafe(work).catch_unwind().await;
            (
                item,
                ended.unwrap_or_else(|panic| Err(Failure::Transient(words_of(&*panic)))),
            )
        };
        self.running.insert(claim, self.tasks.spawn(task));
    }

    /// Drops the work on an item. Whether there was any.
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
            // One that was dropped may have come to its end all the same.
            ended.extend(task.ok().filter(|(item, _)| self.running.remove(&item.claim).is_some()));
            next = self.tasks.try_join_next();
        }
        ended
    }
}

/// What a panic said.
pub(crate) fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", words.unwrap_or("without words"))
}
