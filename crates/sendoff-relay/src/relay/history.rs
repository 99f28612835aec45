//! Handles another history of the database: after a failover, a restored backup, or numbers that were set back.
//!
//! Messages in flight were read from the old history. Those that no sink has are dropped and read again. Those with a sink
//! are settled by id when the sink has answered, because another message may have their number now. Lanes without such
//! messages are given back, leased again immediately, and read from their beginning.

use sendoff::store::History;
use tokio::time::Instant;

use super::running::Running;
use super::state::Holding;
use crate::Observer;

impl Running {
    pub(super) fn compare_history(&mut self, now: Option<&History>) {
        let Some(now) = now.filter(|_| !planted!(HistoryUnnoticed)) else {
            return;
        };
        if let Some(earlier) = self.history.replace(now.clone())
            && let Some(why) = now.breaks_with(&earlier)
        {
            self.reading.is_behind = true;
            self.history_changed(why);
        }
    }

    /// The reader has noticed the change. A change that a heartbeat noticed earlier is the same one, or an older one.
    pub(super) fn read_another_history(&mut self) {
        self.pace.next_poll = Instant::now();
        if !std::mem::take(&mut self.reading.is_behind) {
            self.history = None;
            self.history_changed("rows that were read before no longer exist");
        }
    }

    fn history_changed(&mut self, why: &str) {
        if self.ending.stopping.is_some() {
            return;
        }
        let lanes = self.dispatcher.staying();
        tracing::warn!(
            event = "history_changed",
            why,
            lanes = lanes.len(),
            "database history changed (failover or restored backup); leasing lanes again and reading them from their \
             first message"
        );
        let hooks = self.dispatcher.hooks();
        hooks.observe("history_changed", Observer::history_changed);
        self.holding = Holding::in_another_history(&self.under_way);
        self.dispatcher.leave(&lanes);
        self.registration.next_beat = Instant::now();
    }

    /// The next heartbeat, which is due now, asks for the lanes that were given back to be leased again.
    pub(super) fn hurry_anew(&mut self) {
        if self.holding.anew {
            self.registration.next_beat = Instant::now();
            self.holding.anew = self.dispatcher.is_leaving();
        }
    }
}
