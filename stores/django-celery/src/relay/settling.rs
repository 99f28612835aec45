//! Settling, again and again if need be: what is not written back is sent twice.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{Report, Settings, Settling};
use crate::DjangoOutbox;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Settles until there is nobody left who publishes. Tells what was done.
pub(super) async fn run(
    outbox: DjangoOutbox,
    mut settlements: mpsc::Receiver<Settling>,
    settings: Arc<Settings>,
) -> Report {
    let mut report = Report::default();
    while let Some(Settling { stamp, settlement }) = settlements.recv().await {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match outbox.settle(&stamp, &settlement).await {
                Ok(()) => break report.add(&settlement),
                // By then the rows are anybody's.
                Err(error) if began.elapsed() > settings.stale_timeout => {
                    tracing::error!(event = "celery_settle_failed", %error, "given up: these tasks may be sent twice");
                    break;
                }
                Err(error) => tracing::warn!(event = "celery_settle_failed", %error, "trying again"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
    report
}
