//! Faults made to order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};

/// What is asked of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Begin a transaction.
    Begin,
    /// Emit in a transaction.
    Emit,
    /// Commit a transaction.
    Commit,
    /// Register a relay.
    Register,
    /// Renew a lease.
    Heartbeat,
    /// Lease lanes.
    Acquire,
    /// Give lanes back.
    Release,
    /// Strike a relay off.
    Deregister,
    /// Take lanes from relays that vanished.
    Evict,
    /// Forget crashes.
    ClearQuarantine,
    /// Note a quarantined message.
    Quarantined,
    /// Read on.
    Read,
    /// Look for keys that wait.
    BlockedKeys,
    /// Settle.
    Settle,
    /// Let go of held rows.
    ReleaseOrphans,
    /// Count.
    Backlog,
    /// Look how it is.
    StoreHealth,
    /// Look for pauses.
    Paused,
    /// Clean up what is old.
    Clean,
    /// Write figures.
    Figures,
    /// Anything of an operator's.
    Operate,
}

/// Which calls of a [`super::MemoryStore`] go wrong, and how.
#[derive(Debug, Default)]
pub struct Faults(Mutex<HashMap<Verb, Plan>>, AtomicBool);

#[derive(Debug, Default, Clone)]
struct Plan {
    fail_before: u32,
    fail_after: u32,
    forget: u32,
    delay: Duration,
}

impl Faults {
    /// The next `calls` calls of `verb` fail as [`ErrorKind::Unreachable`] and change nothing.
    pub fn fail(&self, verb: Verb, calls: u32) {
        self.change(verb, |plan| plan.fail_before = calls);
    }

    /// The next `calls` calls of `verb` are carried out, and the caller gets [`ErrorKind::Unreachable`] anyway:
    /// the answer was lost on its way. Reads change nothing, so they just fail.
    pub fn lose_answers(&self, verb: Verb, calls: u32) {
        self.change(verb, |plan| plan.fail_after = calls);
    }

    /// The next `calls` settlements that tell of nothing but deliveries of ready messages are answered and then
    /// forgotten, as a server does that crashes before it has written an asynchronous commit down.
    ///
    /// Only those: where a message has to wait, or has waited, a relay counts on it. It would hold those behind it for
    /// nothing, or take a key for free whose messages still wait, and the message would arrive behind its followers.
    pub fn lose_settles(&self, calls: u32) {
        self.change(Verb::Settle, |plan| plan.forget = calls);
    }

    /// Whether settlements that make messages wait are refused for good, as where a privilege is missing.
    pub fn refuse_waits(&self, refuse: bool) {
        self.1.store(refuse, Ordering::SeqCst);
    }

    /// Fails for settlements that are refused.
    pub(super) fn check_waits(&self, waits: bool) -> Result<()> {
        if waits && self.1.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Denied, "messages could not be settled")
                .because("nothing may be written to the waiting table")
                .next_step("grant it"));
        }
        Ok(())
    }

    /// Every call of `verb` takes so much longer, before it looks at the tables.
    pub fn delay(&self, verb: Verb, by: Duration) {
        self.change(verb, |plan| plan.delay = by);
    }

    /// Everything works from now on.
    pub fn clear(&self) {
        self.refuse_waits(false);
        self.plans().clear();
    }

    /// To be called before the tables are looked at.
    pub(super) async fn before(&self, verb: Verb) -> Result<()> {
        let delay = self.plans().get(&verb).map_or(Duration::ZERO, |plan| plan.delay);
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        if self.take(verb, |plan| &mut plan.fail_before) {
            return Err(unreachable_store(verb));
        }
        Ok(())
    }

    /// To be called when the tables have been changed.
    pub(super) fn after(&self, verb: Verb) -> Result<()> {
        if self.take(verb, |plan| &mut plan.fail_after) {
            return Err(unreachable_store(verb));
        }
        Ok(())
    }

    /// Whether this settlement is to be forgotten.
    pub(super) fn forgets_settle(&self) -> bool {
        self.take(Verb::Settle, |plan| &mut plan.forget)
    }

    fn take(&self, verb: Verb, count: impl Fn(&mut Plan) -> &mut u32) -> bool {
        let mut plans = self.plans();
        let Some(left) = plans.get_mut(&verb).map(count) else {
            return false;
        };
        let some = *left > 0;
        *left = left.saturating_sub(1);
        some
    }

    fn change(&self, verb: Verb, change: impl Fn(&mut Plan)) {
        change(self.plans().entry(verb).or_default());
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<Verb, Plan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unreachable_store(verb: Verb) -> Error {
    Error::new(ErrorKind::Unreachable, "cannot reach the store")
        .because(format!("a fault was ordered for {verb:?}"))
        .next_step("try again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fault_hits_as_often_as_it_was_ordered() {
        let faults = Faults::default();
        faults.fail(Verb::Settle, 1);
        assert!(faults.before(Verb::Settle).await.unwrap_err().is_temporary());
        assert!(faults.before(Verb::Settle).await.is_ok());
        faults.lose_answers(Verb::Commit, 1);
        assert!(faults.before(Verb::Commit).await.is_ok());
        assert!(faults.after(Verb::Commit).is_err() && faults.after(Verb::Commit).is_ok());
        faults.delay(Verb::Read, Duration::from_secs(3));
        let began = tokio::time::Instant::now();
        faults.before(Verb::Read).await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }
}
