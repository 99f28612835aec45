//! Items of workers that are gone become due, on a schedule.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::WorkStore;
use tokio::time::sleep;

/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Reaps for as long as it is polled, often enough that no item waits much longer than it has to.
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
                    event = "items_reaped",
                    reaped,
                    "workers did not end these items; they are due again"
                );
            }
            Err(error) if failed_before => tracing::debug!(event = "reap_failed", %error, "tried again later"),
            Err(error) => tracing::warn!(event = "reap_failed", %error, "tried again later"),
        }
        sleep(pause).await;
    }
}

/// Reaps beside something else, for as long as that takes.
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
