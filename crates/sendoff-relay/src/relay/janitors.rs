//! Work that is done on the side.

use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;
use super::running::Running;

/// How many rows one step of cleaning takes at most, and the pause before the next.
pub(super) const CLEAN_AT_ONCE: usize = 1000;
pub(super) const CLEAN_PAUSE: Duration = Duration::from_millis(100);

impl Running {
    pub(super) fn start_careful(&mut self) {
        if self.suspecting {
            return;
        }
        let Some((lane, place)) = self.desk.next_careful(Instant::now()) else {
            return;
        };
        self.suspecting = true;
        let (store, owner) = (self.store.clone(), self.owner);
        self.tasks.spawn(async move {
            Event::Suspected(
                store
                    .suspect(owner, lane, Some((place.seq, place.leg.as_deref())))
                    .await,
            )
        });
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

    pub(super) fn start_cleaning(&mut self, now: Instant) {
        if self.cleaning || self.once || now < self.next_clean {
            return;
        }
        self.cleaning = true;
        self.next_clean = now + self.settings.clean;
        let store = self.store.clone();
        self.tasks
            .spawn(async move { Event::Cleaned(store.clean(CLEAN_AT_ONCE).await) });
    }
}
