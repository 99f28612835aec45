//! Background work: quarantine records, sweeping, cleaning, and blocked keys.

use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;
use super::running::Running;
use super::trouble::Step;

/// The pause between two steps of cleaning.
pub(super) const CLEAN_PAUSE: Duration = Duration::from_millis(100);

/// The shortest time between two reads of the blocked keys.
pub(super) const RECHECK_PAUSE: Duration = Duration::from_secs(60);

/// After such a read, wait this many times its duration: it is slow when many rows wait.
pub(super) const RECHECK_REST: u32 = 100;

/// How many rows a step deletes: few, so that it does not slow down emitters; but twice the rows settled since the step
/// before, up to a limit, so that cleaning keeps up with them.
fn rows_to_clean(settled: usize) -> usize {
    (2 * settled).clamp(200, 2000)
}

impl Running {
    /// One write at a time: record a group, remove the record of a finished one, or clear lanes.
    pub(super) fn start_quarantine(&mut self, now: Instant) {
        if self.under_way.quarantine
            || !self.trouble.allows(Step::Quarantined, now)
            || !self.trouble.allows(Step::ClearQuarantine, now)
        {
            return;
        }
        let (store, owner) = (self.store.clone(), self.registration.owner);
        let cleared = self.dispatcher.clear_quarantine(self.watched.has_caught_up(), now);
        if !cleared.is_empty() {
            self.under_way.quarantine = true;
            self.under_way.tasks.spawn(async move {
                let done = store.clear_quarantine(owner, &cleared).await;
                Event::Cleared(cleared, done)
            });
        } else if let Some((lane, row_refs)) = self.dispatcher.next_group(now) {
            self.under_way.quarantine = true;
            self.under_way.tasks.spawn(async move {
                let noted = store.quarantine(owner, lane, &row_refs).await;
                Event::Quarantined { void: None, noted }
            });
        } else if let Some(lane) = self.dispatcher.void_note() {
            self.under_way.quarantine = true;
            self.under_way.tasks.spawn(async move {
                let noted = store.quarantine(owner, lane, &[]).await;
                Event::Quarantined {
                    void: Some(lane),
                    noted,
                }
            });
        }
    }

    pub(super) fn start_sweep(&mut self, now: Instant) {
        if self.under_way.sweep || now < self.janitors.next_sweep {
            return;
        }
        self.under_way.sweep = true;
        self.janitors.next_sweep = now + self.settings.sweep;
        let (store, owner, lanes) = (self.store.clone(), self.registration.owner, self.dispatcher.staying());
        self.under_way
            .tasks
            .spawn(async move { Event::Swept(store.release_orphans(owner, &lanes).await) });
    }

    /// Reads the blocked keys from the store, to forget those that are free.
    pub(super) fn start_recheck(&mut self, now: Instant) {
        if self.under_way.recheck || self.once || now < self.janitors.next_recheck {
            return;
        }
        self.janitors.next_recheck = now + RECHECK_PAUSE;
        let lanes = self.dispatcher.begin_recheck();
        if lanes.is_empty() {
            return;
        }
        self.under_way.recheck = true;
        let store = self.store.clone();
        self.under_way.tasks.spawn(async move {
            let blocked = store.blocked_keys(&lanes).await;
            Event::Rechecked {
                begun: now,
                lanes,
                blocked,
            }
        });
    }

    pub(super) fn start_cleaning(&mut self, now: Instant) {
        if self.under_way.clean || self.once || now < self.janitors.next_clean {
            return;
        }
        self.under_way.clean = true;
        self.janitors.next_clean = now + self.settings.clean;
        let rows = rows_to_clean(std::mem::take(&mut self.janitors.settled_meanwhile));
        let store = self.store.clone();
        self.under_way.tasks.spawn(async move {
            let cleaned = store.clean(rows).await;
            Event::Cleaned(cleaned.map(|count| count >= rows as u64))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::rows_to_clean;

    #[test]
    fn cleaning_is_gentle_and_keeps_up() {
        assert_eq!([0, 50, 400, 100_000].map(rows_to_clean), [200, 200, 800, 2000]);
    }
}
