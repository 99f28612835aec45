//! The registered hooks, and counters of their failures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Observer;

use super::{AsyncHooks, HookResult, Hooks};

/// Counts failures of hooks since the relay was built. All clones share the counters.
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
    /// Calls of asynchronous hooks that were not made, because too many calls were queued.
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
                "asynchronous hooks are too slow: calls were dropped"
            );
        }
    }
}

/// The registered hooks.
#[derive(Clone, Default)]
pub(crate) struct HookList {
    pub(crate) hooks: Vec<Arc<dyn Hooks>>,
    /// Started when the relay starts.
    pub(crate) beside: Vec<Arc<dyn AsyncHooks>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) counts: HookCounts,
}

impl HookList {
    pub(crate) fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    pub(crate) fn each(&self, name: &'static str, call: impl Fn(&dyn Hooks) -> HookResult) {
        for hook in &self.hooks {
            let ended = catch_unwind(AssertUnwindSafe(|| call(hook.as_ref()))).ok();
            self.counts.ended(name, ended);
        }
    }

    /// Calls an observer.
    pub(crate) fn guarded(&self, name: &'static str, call: impl FnOnce()) {
        let ended = catch_unwind(AssertUnwindSafe(call)).ok();
        self.counts.ended(name, ended.map(Ok));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Idle;
    impl Hooks for Idle {}

    #[test]
    fn a_panic_or_an_error_in_a_hook_is_contained_and_counted() {
        let list = HookList {
            hooks: vec![Arc::new(Idle), Arc::new(Idle)],
            ..HookList::default()
        };
        let calls = std::cell::Cell::new(0);
        list.each("sent", |_| {
            calls.set(calls.get() + 1);
            if calls.get() == 1 {
                panic!("on purpose");
            }
            Err("on purpose".into())
        });
        assert_eq!(calls.get(), 2, "the second is called after the first panicked");
        let expected = HookFailures {
            failed: 1,
            panicked: 1,
            dropped: 0,
        };
        assert_eq!(list.counts.read(), expected);
    }
}
