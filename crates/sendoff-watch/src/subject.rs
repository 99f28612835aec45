//! One watched relay.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sendoff::store::{DeadReason, MigrateStore, RelayStore, StoreHealth};
use sendoff::{Error, Outgoing, Result, Sink};
use sendoff_relay::{Observer, PublishedBatch, RelayHealth, SettledBatch};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::figures::Figures;
use crate::health::Health;

/// One watched relay, as its [`Observer`].
pub struct Subject {
    /// The label `source` of the relay's metrics; empty if there is only one relay.
    name: String,
    figures: Mutex<Figures>,
    health: Mutex<Health>,
    relay_healths: watch::Sender<Option<Instant>>,
}

/// The parts of a relay that the watch checks.
pub struct Surroundings {
    /// The relay's store.
    pub store: Arc<dyn RelayStore>,
    /// The store's migrations, to check the version of the tables.
    pub migrate: Option<Arc<dyn MigrateStore>>,
    /// The relay's sinks, by name.
    pub sinks: Vec<(Arc<str>, Arc<dyn Sink>)>,
}

impl Subject {
    pub(crate) fn new(name: &str, topics: usize, with_durations: bool, stall_after: Duration) -> Self {
        Self {
            name: name.to_owned(),
            figures: Mutex::new(Figures::new(topics, with_durations)),
            health: Mutex::new(Health::new(stall_after)),
            relay_healths: watch::channel(None).0,
        }
    }

    /// Reports the health of the outbox. For relays without a [`sendoff::store::RelayStore`]; for all others the watch
    /// asks the store.
    pub fn tell_store_health(&self, asked: Instant, store_health: StoreHealth) {
        let now = Instant::now();
        self.figures().clock = Some(Clock::new(asked, now, store_health.now));
        self.health().looked(Some(store_health), now);
    }

    /// Reports that the database did not answer. For relays without a [`sendoff::store::RelayStore`].
    pub fn tell_unanswered(&self, why: &Error) {
        self.health().look_failed(why.to_string(), Instant::now());
    }

    /// Reports the result of a check of the tables. For relays without a [`sendoff::store::RelayStore`].
    pub fn tell_schema(&self, checked: &Result<()>) {
        self.health().schema_checked(checked);
    }

    /// Reports whether a sink can be reached. For relays without a [`sendoff::store::RelayStore`].
    pub fn tell_checked(&self, sink: &Arc<str>, checked: Result<(), String>) {
        self.health().sink_checked(sink, checked);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn relay_healths(&self) -> watch::Receiver<Option<Instant>> {
        self.relay_healths.subscribe()
    }
}

impl Observer for Subject {
    fn published(&self, batch: &PublishedBatch<'_>) {
        self.figures().published(batch);
    }

    fn retried(&self, outgoing: &Outgoing, sink: &str) {
        self.figures().retried(&outgoing.topic, sink);
    }

    fn dead_lettered(&self, outgoing: &Outgoing, sink: &str, reason: DeadReason) {
        self.figures().dead(&outgoing.topic, sink, reason);
    }

    fn settled(&self, settled: &SettledBatch) {
        self.figures().settled(settled);
    }

    fn history_changed(&self) {
        self.figures().history_changes += 1;
    }

    fn relay_health(&self, relay_health: &RelayHealth) {
        self.health().relay_health = Some(relay_health.clone());
        self.relay_healths.send_replace(Some(relay_health.at));
    }
}
