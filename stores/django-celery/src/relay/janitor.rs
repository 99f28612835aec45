//! Background work: counts rows for the log, and deletes old dead letters.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::Settings;
use crate::{DjangoOutbox, Purge, Stats};

/// How often old dead letters are looked for.
const PURGE_EVERY: Duration = Duration::from_secs(3600);

/// Works until it is aborted.
pub(super) async fn run(outbox: DjangoOutbox, settings: Arc<Settings>) {
    let mut counting = interval(settings.queue_snapshot_refresh);
    let mut purging = interval(PURGE_EVERY);
    counting.set_missed_tick_behavior(MissedTickBehavior::Delay);
    purging.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = None;
    loop {
        tokio::select! {
            _ = counting.tick() => count(&outbox, &settings, &mut last).await,
            _ = purging.tick() => purge(&outbox, &settings).await,
        }
    }
}

/// Only what has changed is worth a line.
async fn count(outbox: &DjangoOutbox, settings: &Settings, last: &mut Option<(u64, u64, u64)>) {
    let Ok(stats) = outbox.stats(settings.stale_timeout).await else {
        // Claiming tells what is wrong.
        return;
    };
    let Stats {
        eligible,
        waiting,
        dead,
        oldest,
        ..
    } = stats;
    if last.replace((eligible, waiting, dead)) != Some((eligible, waiting, dead)) {
        tracing::info!(
            event = "celery_queue",
            eligible,
            waiting,
            dead,
            ?oldest,
            "number of tasks by state"
        );
    }
}

async fn purge(outbox: &DjangoOutbox, settings: &Settings) {
    let Some(retention) = settings.dead_letter_retention else {
        return;
    };
    let old = Purge {
        older_than_dead: Some(retention),
        ..Purge::default()
    };
    match outbox.purge(&old).await {
        Ok(purged) if purged.is_empty() => {}
        Ok(purged) => {
            let purged: u64 = purged.values().sum();
            tracing::info!(event = "celery_dead_letters_purged", purged, "old dead letters deleted");
        }
        Err(error) => {
            tracing::warn!(event = "celery_purge_failed", %error, "cannot delete old dead letters; will retry later");
        }
    }
}
