//! Settling: writes results back as soon as possible, until they are written or the lease has expired.

use std::sync::Arc;
use std::time::Duration;

use sendoff::Error;
use sendoff::store::{OwnerId, RelayStore, SettleReport, Settlement};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::event::Event;
use super::publish::lease_over;
use super::running::Running;
use super::trail;
use crate::dispatcher::Decided;

/// The longest pause between two tries to write.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// After how long a failing settlement is logged: longer than a lease, because the lease ends settlements that an outage stopped.
const TELL_AFTER: Duration = Duration::from_secs(12);

/// The largest number of rows in one settlement transaction.
const SETTLE_AT_ONCE: usize = 10_000;

impl Running {
    pub(super) fn start_settling(&mut self, now: Instant) {
        self.watched.decided(self.dispatcher.has_settlements(), now);
        if self.under_way.settle {
            return;
        }
        let decided = match self.dispatcher.take_refused(now) {
            Some(refused) => refused,
            None if self.dispatcher.has_settlements() => self.dispatcher.take_settlements(SETTLE_AT_ONCE),
            None => return,
        };
        // All of them wait behind results that were refused.
        if decided.entries.is_empty() {
            return;
        }
        self.under_way.settle = true;
        trail::settling(&decided.settlements);
        self.watched.settling(!self.dispatcher.has_settlements(), now);
        let work = settle(
            self.store.clone(),
            self.registration.owner,
            decided,
            self.registration.lease.subscribe(),
        );
        self.under_way.tasks.spawn(async move {
            let (decided, written) = work.await;
            Event::Settled(decided, written)
        });
    }
}

/// The result of a settlement.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The store's report about those that it wrote, and those of lost lanes.
    pub(crate) report: SettleReport,
    /// Those that the database refuses permanently, and those behind them in their keys, by index in the list, ascending: none
    /// of them is written.
    pub(crate) refused: Vec<usize>,
    /// Why the last of them was refused.
    pub(crate) refusal: Option<Error>,
}

impl From<SettleReport> for Written {
    fn from(report: SettleReport) -> Self {
        Self {
            report,
            ..Self::default()
        }
    }
}

/// Writes settlements. When the lease has expired, all their lanes count as lost: the relay that holds them now delivers
/// those messages again.
pub(crate) async fn settle(
    store: Arc<dyn RelayStore>,
    owner: OwnerId,
    decided: Decided,
    lease: watch::Receiver<Instant>,
) -> (Decided, Written) {
    let settlements = &decided.settlements;
    let written = tokio::select! {
        biased;
        // A successful write counts even when it is reported late: the fence rejects every write after the lease.
        written = write(store.as_ref(), owner, settlements) => written,
        () = lease_over(lease) => {
            let mut lost: Vec<_> = settlements.iter().map(|settlement| settlement.row_ref.lane).collect();
            lost.sort_unstable();
            lost.dedup();
            SettleReport { lost, ..SettleReport::default() }.into()
        }
    };
    (decided, written)
}

/// The database may refuse a batch because of one row: a refused batch is halved until that row is alone. The others are
/// written, in order, except those behind it in its key: alone in the waiting table, they would be due before it.
async fn write(store: &dyn RelayStore, owner: OwnerId, settlements: &[Settlement]) -> Written {
    let mut written = Written::default();
    let mut parts = vec![(0, settlements.len())];
    let mut last = None;
    while let Some((start, end)) = parts.pop() {
        match persist(store, owner, &settlements[start..end]).await {
            Ok(report) => {
                written.report.lost.extend(report.lost);
                written.report.freed.extend(report.freed);
                written.report.woke |= report.woke;
            }
            Err(error) if end - start == 1 => {
                written.refused.push(start);
                parts = without_key(parts, settlements, start, &mut written.refused);
                (last, written.refusal) = (Some(start), Some(error));
            }
            Err(_) => {
                let middle = start + (end - start) / 2;
                parts.push((middle, end));
                parts.push((start, middle));
            }
        }
    }
    written.report.lost.sort_unstable();
    written.report.lost.dedup();
    written.refused.sort_unstable();
    if let (Some(at), Some(error)) = (last, &written.refusal) {
        tell_refused(&settlements[at], written.refused.len(), error);
    }
    written
}

/// The parts that are left, the next one last, without those of the key of `refused`.
fn without_key(
    parts: Vec<(usize, usize)>,
    settlements: &[Settlement],
    refused: usize,
    held_back: &mut Vec<usize>,
) -> Vec<(usize, usize)> {
    let (lane, key) = (settlements[refused].row_ref.lane, &settlements[refused].key);
    if key.is_none() {
        return parts;
    }
    let mut left = Vec::with_capacity(parts.len());
    for (start, mut end) in parts {
        for at in (start..end).rev() {
            if settlements[at].row_ref.lane == lane && settlements[at].key == *key {
                held_back.push(at);
                if at + 1 < end {
                    left.push((at + 1, end));
                }
                end = at;
            }
        }
        if start < end {
            left.push((start, end));
        }
    }
    left
}

/// Tries until the store accepts the settlements or refuses them permanently.
async fn persist(store: &dyn RelayStore, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport, Error> {
    let (mut pause, begun, mut told) = (Duration::from_millis(50), Instant::now(), false);
    loop {
        match store.settle(owner, settlements).await {
            Err(error) if error.is_temporary() => {
                // In an outage the heartbeat fails as well and logs it. This logs, once, when only settling fails for long.
                if !told && begun.elapsed() >= TELL_AFTER {
                    told = true;
                    tracing::warn!(
                        event = "settle_failed", count = settlements.len(), %error,
                        "cannot write delivery results; will retry"
                    );
                } else {
                    tracing::debug!(
                        event = "settle_failed", count = settlements.len(), %error,
                        "cannot write delivery results; will retry"
                    );
                }
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            answer => return answer,
        }
    }
}

fn tell_refused(settlement: &Settlement, count: usize, error: &Error) {
    let row_ref = &settlement.row_ref;
    tracing::error!(
        event = "settle_refused", count, lane = row_ref.lane, seq = row_ref.seq, id = %row_ref.id, %error,
        "cannot write delivery results: the database refused; rows are kept, will retry"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use sendoff::store::{RowRef, Table};

    fn settlement(seq: i64, key: Option<&str>) -> Settlement {
        Settlement {
            row_ref: RowRef {
                table: Table::Ready,
                lane: 1,
                seq,
                id: sendoff::Uuid::nil().into(),
                sink: None,
                locator: 0,
            },
            epoch: 1,
            deliveries: Vec::new(),
            key: key.map(Into::into),
            attempts: 0,
        }
    }

    #[test]
    fn what_is_behind_a_refused_one_in_its_key_is_not_written() {
        let keys = ["k", "k", "j", "k", "j", "j", "k"];
        let settlements: Vec<Settlement> = (0..).zip(keys).map(|(seq, key)| settlement(seq, Some(key))).collect();
        let mut held_back = Vec::new();
        let left = without_key(vec![(4, 7), (1, 4)], &settlements, 0, &mut held_back);
        assert_eq!(left, [(4, 6), (2, 3)], "the next part is the last one");
        held_back.sort_unstable();
        assert_eq!(held_back, [1, 3, 6]);
    }

    #[test]
    fn messages_without_a_key_are_behind_nothing() {
        let settlements: Vec<Settlement> = (0..4).map(|seq| settlement(seq, None)).collect();
        let left = without_key(vec![(2, 4), (1, 2)], &settlements, 0, &mut Vec::new());
        assert_eq!(left, [(2, 4), (1, 2)]);
    }
}
