//! Writing decisions back, until they are written or the lease is over.

use std::sync::Arc;
use std::time::Duration;

use sendoff::Error;
use sendoff::store::{OwnerId, RelayStore, SettleReport, Settlement};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::desk::Decided;
use crate::publish::lease_over;

/// The longest pause between two tries to write.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// After how long trouble with settling is logged: longer than a lease, which ends what an outage began.
const TELL_AFTER: Duration = Duration::from_secs(12);

/// What became of decisions.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// What the store said of those that it has written, or that are of lost lanes.
    pub(crate) report: SettleReport,
    /// Those that the database refuses for good, by their place in the list, in order: nothing of theirs is written.
    pub(crate) refused: Vec<usize>,
    /// Why the last of them was.
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

/// Carries settlements out. After the lease is over all their lanes count as lost: whoever holds them now delivers those
/// messages again.
pub(crate) async fn settle(
    store: Arc<dyn RelayStore>,
    owner: OwnerId,
    decided: Decided,
    lease: watch::Receiver<Instant>,
) -> (Decided, Written) {
    let settlements = &decided.settlements;
    let written = tokio::select! {
        biased;
        // What is known to be written counts, whatever the time. Nothing can be written after the lease: that is fenced.
        written = write(store.as_ref(), owner, settlements) => written,
        () = lease_over(lease) => {
            let mut lost: Vec<_> = settlements.iter().map(|settlement| settlement.place.lane).collect();
            lost.sort_unstable();
            lost.dedup();
            SettleReport { lost, ..SettleReport::default() }.into()
        }
    };
    (decided, written)
}

/// One row may be what the database refuses: halves that are refused are halved again until it is alone. The others are
/// written, in order.
async fn write(store: &dyn RelayStore, owner: OwnerId, settlements: &[Settlement]) -> Written {
    let mut written = Written::default();
    let mut parts = vec![(0, settlements.len())];
    while let Some((start, end)) = parts.pop() {
        match persist(store, owner, &settlements[start..end]).await {
            Ok(report) => {
                written.report.lost.extend(report.lost);
                written.report.freed.extend(report.freed);
                written.report.woke |= report.woke;
            }
            Err(error) if end - start == 1 => {
                written.refused.push(start);
                written.refusal = Some(error);
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
    if let (Some(at), Some(error)) = (written.refused.last(), &written.refusal) {
        tell_refused(&settlements[*at], written.refused.len(), error);
    }
    written
}

/// Tries until the store says yes, or no for good.
async fn persist(store: &dyn RelayStore, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport, Error> {
    let (mut pause, begun, mut told) = (Duration::from_millis(50), Instant::now(), false);
    loop {
        match store.settle(owner, settlements).await {
            Err(error) if error.is_temporary() => {
                // In an outage the heartbeat fails as well, and tells. What fails for long on its own is told here, once.
                if !told && begun.elapsed() >= TELL_AFTER {
                    told = true;
                    tracing::warn!(event = "settle_failed", count = settlements.len(), %error, "settling is tried again");
                } else {
                    tracing::debug!(event = "settle_failed", count = settlements.len(), %error, "settling is tried again");
                }
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            answer => return answer,
        }
    }
}

fn tell_refused(settlement: &Settlement, count: usize, error: &Error) {
    let place = &settlement.place;
    tracing::error!(
        event = "settle_refused", count, lane = place.lane, seq = place.seq, id = %place.id, %error,
        "the database refuses to settle messages; they stay where they are, and this is tried again"
    );
}
