//! Asking the store how it is, and the sinks whether they can be reached.

use std::sync::Arc;
use std::time::Duration;

use sendoff::Sink;
use sendoff::store::{MigrateStore, RelayStore};
use tokio::time::{Instant, sleep, timeout};

use crate::clock::Clock;
use crate::subject::Subject;

/// How long a question may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many times longer than it took the store is left alone after a look: watching must not become its main work.
const REST: u32 = 50;
/// How often sinks are checked.
const CHECK: Duration = Duration::from_secs(15);

/// Looks at the store once.
pub(crate) async fn look(subject: &Subject, store: &dyn RelayStore, migrate: Option<&dyn MigrateStore>) {
    let asked = Instant::now();
    let answer = timeout(PATIENCE, store.vitals()).await;
    let now = Instant::now();
    match answer {
        Ok(Ok(vitals)) => {
            if let Some(vitals) = &vitals {
                subject.figures().clock = Some(Clock::new(asked, now, vitals.now));
            }
            subject.health().looked(vitals, now);
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

/// Looks again and again.
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

/// Checks the sinks again and again.
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
