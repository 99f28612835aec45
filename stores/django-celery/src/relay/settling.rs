//! Writes the results of rows, and retries if that fails: a result that is not written makes the task be sent twice.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::hand::Hand;
use super::{Report, Settings, Settled, Settling};
use crate::{DjangoOutbox, Settlement, Stamp};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Settles until there is nobody left who publishes. Tells what was done.
pub(super) async fn run(
    outbox: DjangoOutbox,
    mut settlements: mpsc::Receiver<Settling>,
    hand: Arc<Hand>,
    settings: Arc<Settings>,
    stop: CancellationToken,
) -> Report {
    let mut report = Report::default();
    // A database that is down must not keep a relay from stopping.
    let out_of_time = async {
        stop.cancelled().await;
        sleep(settings.shutdown_timeout).await;
    };
    tokio::pin!(out_of_time);
    while let Some(settling) = settlements.recv().await {
        let Settling {
            decided_at,
            stamp,
            settlement,
        } = settling;
        let began = Instant::now();
        hand.writing(decided_at);
        let settled = tokio::select! {
            biased;
            settled = settle(&outbox, &stamp, &settlement, settings.stale_timeout) => settled,
            () = &mut out_of_time => false,
        };
        hand.let_go(settlement.rows());
        if settled {
            report.add(&settlement);
            hand.settled(&Settled {
                rows: settlement.rows(),
                took: began.elapsed(),
                lag: decided_at.elapsed(),
            });
        } else {
            tracing::error!(
                event = "celery_settle_failed",
                "cannot write results: giving up; tasks that were sent may be sent again"
            );
        }
        if stop.is_cancelled() && !settled {
            break;
        }
    }
    report
}

/// Whether it was written before the rows were anybody's.
async fn settle(outbox: &DjangoOutbox, stamp: &Stamp, settlement: &Settlement, stale: Duration) -> bool {
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match outbox.settle(stamp, settlement).await {
            Ok(()) => return true,
            Err(error) => {
                tracing::warn!(event = "celery_settle_failed", %error, "cannot write results of tasks; will retry");
            }
        }
        if began.elapsed() > stale {
            return false;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
