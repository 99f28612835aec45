//! Delivers due messages from every source, once.

use sendoff::{Error, Result};
use sendoff_relay::OnceReport;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{Source, about};

/// Delivers due messages from all sources concurrently, and returns one result per source, in the order of the
/// configuration.
pub(crate) async fn once(sources: Vec<Source>, stop: &CancellationToken) -> Vec<(String, Result<OnceReport>)> {
    let start = |source: Source| {
        let span = tracing::error_span!("source", source = source.name);
        (
            source.name.clone(),
            tokio::spawn(run(source, stop.clone()).instrument(span)),
        )
    };
    let running: Vec<_> = sources.into_iter().map(start).collect();
    let mut reports = Vec::with_capacity(running.len());
    for (name, task) in running {
        let ended = task.await.unwrap_or_else(|error| {
            Err(Error::new(sendoff::ErrorKind::Backend, "the relay crashed")
                .because(error.to_string())
                .next_step("no message is lost; please report this as a bug, with the logged panic"))
        });
        let ended = ended.map_err(|error| about(&name, &error));
        reports.push((name, ended));
    }
    reports
}

async fn run(source: Source, stop: CancellationToken) -> Result<OnceReport> {
    source.store.prepare().await?;
    source.relay()?.run_once(stop).await
}
