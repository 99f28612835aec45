//! Serves all sources until a stop.

use std::sync::Arc;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_relay::RunReport;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{Health, Source, State};
use crate::reaper;

/// The first and the longest pause before a source that is down is retried.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Serves every source until `stop` is cancelled. A source that is down or has a wrong schema is retried while the
/// others continue. If every source has a permanent error, this ends.
///
/// # Errors
/// The error of the first source that was not served at the end; it names the source.
pub(crate) async fn serve(sources: Vec<Source>, stop: CancellationToken) -> Result<()> {
    let health = Health::new(sources.iter().map(|source| source.name.clone()));
    let mut tasks = JoinSet::new();
    for source in sources {
        // At level error, so that a log of errors only still names the source.
        let span = tracing::error_span!("source", source = source.name);
        tasks.spawn(keep_serving(Arc::new(source), health.clone(), stop.clone()).instrument(span));
    }
    while tasks.join_next().await.is_some() {}
    health.first_down().map_or(Ok(()), Err)
}

async fn keep_serving(source: Arc<Source>, health: Health, stop: CancellationToken) {
    let (mut pause, mut told) = (FIRST_PAUSE, false);
    loop {
        let began = Instant::now();
        let error = match run(&source, &health, &stop).await {
            Ok(report) => {
                let RunReport {
                    delivered,
                    retried,
                    deferred,
                    dead,
                } = report;
                tracing::info!(event = "relay_done", delivered, retried, deferred, dead, "stopped");
                return;
            }
            Err(error) => error,
        };
        // A source that was served for a while has a new problem.
        told &= began.elapsed() < LONGEST_PAUSE;
        if std::mem::replace(&mut told, true) {
            tracing::debug!(event = "source_down", source = source.name, %error, "source is still not served");
        } else if error.is_temporary() {
            tracing::warn!(event = "source_down", source = source.name, %error, "database of this source is not available; waiting for it");
        } else {
            tracing::error!(event = "source_down", source = source.name, %error, "cannot serve this source until an operator acts");
        }
        health.set(&source.name, State::Down(error));
        if health.is_hopeless() {
            stop.cancel();
        }
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            () = stop.cancelled() => return,
        }
    }
}

/// Runs a relay on the source, in its own task, so that a panic does not affect the others.
async fn run(source: &Arc<Source>, health: &Health, stop: &CancellationToken) -> Result<RunReport> {
    source.store.prepare().await?;
    let relay = source.relay()?;
    health.set(&source.name, State::Serving);
    tracing::info!(
        event = "source_up",
        source = source.name,
        "the relay serves this source"
    );
    let (work, reap_after, stop) = (source.store.work.clone(), source.config.relay.reap_after, stop.clone());
    let running = async move { reaper::beside(&work, reap_after, Box::pin(relay.run(stop))).await }.in_current_span();
    tokio::spawn(running).await.unwrap_or_else(|error| {
        Err(Error::new(ErrorKind::Backend, "the relay crashed")
            .because(error.to_string())
            .next_step("no message is lost, the relay restarts; please report this as a bug, with the logged panic")
            .with_source(error))
    })
}
