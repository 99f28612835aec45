//! Calls into the application, which may do anything but stop the relay.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use sendoff::Delivery;
use sendoff::store::DeadReason;

/// What an application may want to know. Called on the relay's own task, one after the other: be quick, and hand longer
/// work on. A panic is logged and the relay goes on.
pub trait Hooks: Send + Sync + 'static {
    /// A sink confirmed a message.
    fn sent(&self, delivery: &Delivery, leg: &str) {
        let _ = (delivery, leg);
    }

    /// An attempt failed, the `attempts`-th; the next one is after `delay`.
    fn failed(&self, delivery: &Delivery, leg: &str, attempts: u32, error: &str, delay: Duration) {
        let _ = (delivery, leg, attempts, error, delay);
    }

    /// A message goes to the dead letters.
    fn dead_lettered(&self, delivery: &Delivery, leg: &str, reason: DeadReason, error: &str) {
        let _ = (delivery, leg, reason, error);
    }
}

/// The registered hooks.
#[derive(Clone, Default)]
pub(crate) struct HookList(pub(crate) Vec<Arc<dyn Hooks>>);

impl HookList {
    pub(crate) fn each(&self, name: &'static str, call: impl Fn(&dyn Hooks)) {
        for hook in &self.0 {
            if catch_unwind(AssertUnwindSafe(|| call(hook.as_ref()))).is_err() {
                tracing::error!(
                    event = "hook_panicked",
                    hook = name,
                    "a hook panicked; the relay goes on"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Panics;
    impl Hooks for Panics {
        fn sent(&self, _: &Delivery, _: &str) {
            panic!("on purpose")
        }
    }

    #[test]
    fn a_panic_in_a_hook_is_contained() {
        let list = HookList(vec![Arc::new(Panics), Arc::new(Panics)]);
        let calls = std::cell::Cell::new(0);
        list.each("sent", |_| {
            calls.set(calls.get() + 1);
            panic!("on purpose");
        });
        assert_eq!(calls.get(), 2);
    }
}
