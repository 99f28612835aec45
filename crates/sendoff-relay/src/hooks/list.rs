//! The registered hooks and observers, and counters of their failures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Observer;

use super::queue::{Call, Queue, Queues};
use super::{HookResult, Hooks};

/// Counts failures of hooks and observers since the relay was built. Clones share the counters.
#[derive(Debug, Clone, Default)]
pub struct HookCounts(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    failed: AtomicU64,
    panicked: AtomicU64,
    dropped: AtomicU64,
}

/// The failures of hooks at one moment, read from [`HookCounts`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HookFailures {
    /// Calls of hooks that returned an error.
    pub failed: u64,
    /// Calls of hooks that panicked.
    pub panicked: u64,
    /// Calls of hooks that were not made, because too many calls were queued.
    pub dropped: u64,
}

impl HookCounts {
    /// Reads the current numbers.
    pub fn read(&self) -> HookFailures {
        HookFailures {
            failed: self.0.failed.load(Ordering::Relaxed),
            panicked: self.0.panicked.load(Ordering::Relaxed),
            dropped: self.0.dropped.load(Ordering::Relaxed),
        }
    }

    /// Counts and logs the result of a call; `None` is a panic.
    pub(super) fn ended(&self, hook: &'static str, ended: Option<HookResult>) {
        match ended {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.0.failed.fetch_add(1, Ordering::Relaxed);
                tracing::error!(event = "hook_failed", hook, %error, "hook failed; the relay continues");
            }
            None => {
                self.0.panicked.fetch_add(1, Ordering::Relaxed);
                tracing::error!(event = "hook_panicked", hook, "hook panicked; the relay continues");
            }
        }
    }

    /// Counts and logs dropped calls.
    pub(super) fn dropped(&self, hook: &'static str, count: u64) {
        let before = self.0.dropped.fetch_add(count, Ordering::Relaxed);
        // One log line per dropped call would add to the load that causes the drops.
        if before / 1000 != (before + count) / 1000 || before == 0 {
            tracing::warn!(
                event = "hook_dropped",
                hook,
                dropped = before + count,
                "hooks are too slow: some calls were dropped"
            );
        }
    }
}

/// The registered hooks and observers.
#[derive(Clone, Default)]
pub(crate) struct HookList {
    /// They get their queues when the relay starts.
    pub(crate) hooks: Vec<Arc<dyn Hooks>>,
    queues: Vec<Queue>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) counts: HookCounts,
}

impl HookList {
    /// Starts the hooks, each behind a queue.
    pub(crate) fn start(&mut self) -> Queues {
        let hooks = std::mem::take(&mut self.hooks);
        let started = hooks.into_iter().map(|hooks| Queue::start(hooks, self.counts.clone()));
        let (queues, tasks) = started.unzip();
        self.queues = queues;
        Queues(tasks)
    }

    pub(crate) fn has_hooks(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Queues a call of each hook.
    pub(crate) fn call(&self, call: impl FnOnce() -> Call) {
        if let [others @ .., last] = self.queues.as_slice() {
            let call = call();
            for queue in others {
                queue.push(call.clone(), &self.counts);
            }
            last.push(call, &self.counts);
        }
    }

    pub(crate) fn is_observed(&self) -> bool {
        !self.observers.is_empty()
    }

    /// Calls each observer.
    pub(crate) fn observe(&self, name: &'static str, call: impl Fn(&dyn Observer)) {
        for observer in &self.observers {
            let ended = catch_unwind(AssertUnwindSafe(|| call(observer.as_ref()))).ok();
            self.counts.ended(name, ended.map(Ok));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Idle;
    impl Observer for Idle {}

    #[test]
    fn a_panic_in_an_observer_is_contained_and_counted() {
        let list = HookList {
            observers: vec![Arc::new(Idle), Arc::new(Idle)],
            ..HookList::default()
        };
        let calls = std::cell::Cell::new(0);
        list.observe("settled", |_| {
            calls.set(calls.get() + 1);
            assert_ne!(calls.get(), 1, "on purpose");
        });
        assert_eq!(calls.get(), 2, "the second is called after the first panicked");
        let expected = HookFailures {
            failed: 0,
            panicked: 1,
            dropped: 0,
        };
        assert_eq!(list.counts.read(), expected);
    }
}
