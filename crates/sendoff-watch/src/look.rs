//! Checks the store and the sinks periodically.

use std::sync::Arc;
use std::time::Duration;

use sendoff::Sink;
use sendoff::store::{MigrateStore, RelayStore};
use tokio::time::{Instant, sleep, timeout};

use crate::clock::Clock;
use crate::subject::Subject;

/// How long a check may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// After a check of the store, wait this many times its duration: checks must not be a large part of its work.
const REST: u32 = 50;
/// How often sinks are checked.
const CHECK: Duration = Duration::from_secs(15);

/// Checks the store once.
pub(crate) async fn look(subject: &Subject, store: &dyn RelayStore, migrate: Option<&dyn MigrateStore>) {
    let asked = Instant::now();
    let answer = timeout(PATIENCE, store.health()).await;
    let now = Instant::now();
    match answer {
        Ok(Ok(store_health)) => {
            if let Some(store_health) = &store_health {
                subject.figures().clock = Some(Clock::new(asked, now, store_health.now));
            }
            subject.health().looked(store_health, now);
        }
        Ok(Err(error)) => subject.health().look_failed(error.to_string(), now),
        Err(_) => subject
            .health()
            .look_failed(format!("no answer within {PATIENCE:?}"), now),
    }
    if let Some(migrate) = migrate
        && let Ok(checked) = timeout(PATIENCE, migrate.check_schema()).await
    {
        subject.health().schema_checked(&checked);
    }
}

/// Checks the store periodically.
pub(crate) async fn keep_looking(
    subject: Arc<Subject>,
    store: Arc<dyn RelayStore>,
    migrate: Option<Arc<dyn MigrateStore>>,
    interval: Duration,
) {
    loop {
        let begun = Instant::now();
        look(&subject, store.as_ref(), migrate.as_deref()).await;
        sleep(interval.max(begun.elapsed() * REST)).await;
    }
}

/// Checks the sinks periodically.
pub(crate) async fn keep_checking(subject: Arc<Subject>, sinks: Vec<(Arc<str>, Arc<dyn Sink>)>) {
    loop {
        for (name, sink) in &sinks {
            let checked = match timeout(PATIENCE, sink.check()).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no answer within {PATIENCE:?}")),
            };
            subject.health().sink_checked(name, checked);
        }
        sleep(CHECK).await;
    }
}
