//! What happens when the database has another history: after a failover, a restored backup, or numbers that were set back.
//!
//! What is in hand was read from the other history. What no sink has is put down; what is with a sink is settled when the
//! sink has answered, by its id, so that no other message is touched that has its number now. Lanes without such messages
//! are given back and leased anew at once, and read from their beginning.

use sendoff::store::History;
use tokio::time::Instant;

use super::running::Running;

impl Running {
    pub(super) fn compare_history(&mut self, now: Option<&History>) {
        let Some(now) = now.filter(|_| !planted!(HistoryUnnoticed)) else {
            return;
        };
        if let Some(earlier) = self.history.replace(now.clone())
            && let Some(why) = now.breaks_with(&earlier)
        {
            self.reader_is_behind = true;
            self.history_changed(why);
        }
    }

    /// The reader has seen it. What a heartbeat saw before is the same change, or is of before it.
    pub(super) fn read_another_history(&mut self) {
        self.next_poll = Instant::now();
        if !std::mem::take(&mut self.reader_is_behind) {
            self.history = None;
            self.history_changed("what was read before is not there any more");
        }
    }

    fn history_changed(&mut self, why: &str) {
        if self.stopping.is_some() {
            return;
        }
        let lanes = self.desk.staying();
        tracing::warn!(
            event = "history_changed",
            why,
            lanes = lanes.len(),
            "the database has another history, as after a failover: lanes are leased anew and read from the beginning"
        );
        let hooks = self.desk.hooks();
        if let Some(observer) = &hooks.observer {
            hooks.guarded("history_changed", || observer.history_changed());
        }
        // The other history may know lanes as this relay's that it gave back long ago.
        (self.unsure, self.anew) = (true, true);
        (self.void_grants, self.void_release) = (self.acquiring, self.releasing);
        self.desk.leave(&lanes);
        self.next_beat = Instant::now();
    }

    /// Lanes that were given back to be leased anew are asked for with the next heartbeat: at once.
    pub(super) fn hurry_anew(&mut self) {
        if self.anew {
            self.next_beat = Instant::now();
            self.anew = self.desk.is_leaving();
        }
    }
}
