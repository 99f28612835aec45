//! Writing decisions back, until they are written or the lease is over.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{OwnerId, RelayStore, SettleReport, Settlement};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::desk::Decided;
use crate::publish::lease_over;

/// The longest pause between two tries to write.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Carries settlements out. After the lease is over all their lanes count as lost: whoever holds them now delivers those
/// messages again.
pub(crate) async fn settle(
    store: Arc<dyn RelayStore>,
    owner: OwnerId,
    decided: Decided,
    lease: watch::Receiver<Instant>,
) -> (Decided, SettleReport) {
    let settlements = &decided.settlements;
    let report = tokio::select! {
        report = write(store.as_ref(), owner, settlements) => report,
        () = lease_over(lease) => {
            let mut lost: Vec<_> = settlements.iter().map(|settlement| settlement.place.lane).collect();
            lost.sort_unstable();
            lost.dedup();
            SettleReport { lost, ..SettleReport::default() }
        }
    };
    (decided, report)
}

async fn write(store: &dyn RelayStore, owner: OwnerId, settlements: &[Settlement]) -> SettleReport {
    let mut pause = Duration::from_millis(50);
    loop {
        match store.settle(owner, settlements).await {
            Ok(report) => return report,
            Err(error) if error.is_temporary() || settlements.len() == 1 => {
                tracing::warn!(event = "settle_failed", count = settlements.len(), %error, "settling is tried again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => {
                // One row may be what the database refuses: alone, it holds up no other.
                tracing::error!(event = "settle_refused", count = settlements.len(), %error, "settling one by one");
                let mut whole = SettleReport::default();
                for settlement in settlements {
                    let part = match store.settle(owner, std::slice::from_ref(settlement)).await {
                        Ok(part) => part,
                        Err(error) => {
                            let (lane, seq) = (settlement.place.lane, settlement.place.seq);
                            tracing::error!(event = "settle_refused", lane, seq, %error, "this row cannot be settled");
                            continue;
                        }
                    };
                    whole.lost.extend(part.lost);
                    whole.freed.extend(part.freed);
                    whole.woke |= part.woke;
                }
                return whole;
            }
        }
    }
}
