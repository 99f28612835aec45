//! Work that is done on the side.

use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;
use super::running::Running;
use super::trouble::Step;

/// The pause between two steps of cleaning.
pub(super) const CLEAN_PAUSE: Duration = Duration::from_millis(100);

/// How often the store is asked which keys are blocked, at most.
pub(super) const RECHECK_PAUSE: Duration = Duration::from_secs(60);

/// How much longer than it takes that is left alone. Where many rows wait it takes a while.
pub(super) const RECHECK_REST: u32 = 100;

/// How many rows a step takes: few, so that those who emit do not notice; but twice what was settled since the step before, so
/// that cleaning keeps up with them however many they are, up to a limit.
fn rows_to_clean(settled: usize) -> usize {
    (2 * settled).clamp(200, 2000)
}

impl Running {
    /// One thing at a time: a group is noted, or the note of one that is done is taken back, or lanes are absolved.
    pub(super) fn start_quarantine(&mut self, now: Instant) {
        if self.suspecting || !self.trouble.allows(Step::Suspect, now) || !self.trouble.allows(Step::Absolve, now) {
            return;
        }
        let (store, owner) = (self.store.clone(), self.owner);
        let absolved = self.desk.absolve(self.watched.has_caught_up(), now);
        if !absolved.is_empty() {
            self.suspecting = true;
            self.tasks.spawn(async move {
                let done = store.absolve(owner, &absolved).await;
                Event::Absolved(absolved, done)
            });
        } else if let Some((lane, places)) = self.desk.next_group(now) {
            self.suspecting = true;
            self.tasks.spawn(async move {
                let noted = store.suspect(owner, lane, &places).await;
                Event::Suspected { void: None, noted }
            });
        } else if let Some(lane) = self.desk.void_note() {
            self.suspecting = true;
            self.tasks.spawn(async move {
                let noted = store.suspect(owner, lane, &[]).await;
                Event::Suspected {
                    void: Some(lane),
                    noted,
                }
            });
        }
    }

    pub(super) fn start_sweep(&mut self, now: Instant) {
        if self.sweeping || now < self.next_sweep {
            return;
        }
        self.sweeping = true;
        self.next_sweep = now + self.settings.sweep;
        let (store, owner, lanes) = (self.store.clone(), self.owner, self.desk.staying());
        self.tasks
            .spawn(async move { Event::Swept(store.release_orphans(owner, &lanes).await) });
    }

    /// Asks the store which keys are blocked, to forget those that are not.
    pub(super) fn start_recheck(&mut self, now: Instant) {
        if self.rechecking || self.once || now < self.next_recheck {
            return;
        }
        self.next_recheck = now + RECHECK_PAUSE;
        let lanes = self.desk.begin_recheck();
        if lanes.is_empty() {
            return;
        }
        self.rechecking = true;
        let store = self.store.clone();
        self.tasks.spawn(async move {
            let blocked = store.blocked_keys(&lanes).await;
            Event::Rechecked {
                begun: now,
                lanes,
                blocked,
            }
        });
    }

    pub(super) fn start_cleaning(&mut self, now: Instant) {
        if self.cleaning || self.once || now < self.next_clean {
            return;
        }
        self.cleaning = true;
        self.next_clean = now + self.settings.clean;
        let rows = rows_to_clean(std::mem::take(&mut self.settled_meanwhile));
        let store = self.store.clone();
        self.tasks.spawn(async move {
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
