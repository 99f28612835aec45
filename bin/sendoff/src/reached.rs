//! Waiting for an unreachable database.

use std::time::Duration;

use sendoff::Result;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Waits until `check` succeeds: a relay must survive a restart of its database without restarting itself. Errors that
/// are not temporary are returned. `false` means that `stop` was cancelled. Logs one line when it starts to wait and
/// one at the end.
pub(crate) async fn reached<F>(stop: &CancellationToken, check: impl Fn() -> F) -> Result<bool>
where
    F: Future<Output = Result<()>>,
{
    let (began, mut waits, mut pause) = (Instant::now(), false, FIRST_PAUSE);
    loop {
        match check().await {
            Ok(()) => break,
            Err(error) if error.is_temporary() && !waits => {
                waits = true;
                tracing::warn!(event = "store_down", %error, "database unreachable; waiting for it");
            }
            Err(error) if error.is_temporary() => {
                tracing::debug!(event = "store_down", %error, "database still unreachable; waiting for it");
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            () = stop.cancelled() => return Ok(false),
        }
    }
    if waits {
        let down_ms = began.elapsed().as_millis() as u64;
        tracing::info!(event = "store_up", down_ms, "database is reachable again");
    }
    Ok(true)
}
