//! Periodic reaping of jobs whose worker is gone.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::WorkStore;
use tokio::time::sleep;

/// The longest pause between two rounds.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Reaps while it is polled, often enough that no job waits much longer than `stale_after`.
async fn run(work: Arc<dyn WorkStore>, stale_after: Duration) -> Infallible {
    let pause = (stale_after / 4).clamp(Duration::from_millis(100), LONGEST_PAUSE);
    let mut failed = false;
    loop {
        let reaped = work.reap(stale_after).await;
        let failed_before = std::mem::replace(&mut failed, reaped.is_err());
        match reaped {
            Ok(0) => {}
            Ok(reaped) => {
                tracing::warn!(
                    event = "jobs_reaped",
                    reaped,
                    "jobs reaped: their leases expired; they are due again, or failed if no attempts were left"
                );
            }
            Err(error) if failed_before => {
                tracing::debug!(event = "reap_failed", %error, "cannot reap jobs; will retry");
            }
            Err(error) => tracing::warn!(event = "reap_failed", %error, "cannot reap jobs; will retry"),
        }
        sleep(pause).await;
    }
}

/// Reaps while `rest` runs.
pub(crate) async fn beside<T>(
    work: &Arc<dyn WorkStore>,
    stale_after: Option<Duration>,
    rest: impl Future<Output = T>,
) -> T {
    let Some(stale_after) = stale_after else {
        return rest.await;
    };
    tokio::select! {
        done = rest => done,
        never = run(work.clone(), stale_after) => match never {},
    }
}
