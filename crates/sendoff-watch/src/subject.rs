//! One relay that is watched.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sendoff::store::{DeadReason, MigrateStore, RelayStore, Vitals};
use sendoff::{Delivery, Error, Result, Sink};
use sendoff_relay::{Observer, PublishedBatch, Pulse, SettledBatch};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::figures::Figures;
use crate::health::Health;

/// One relay that is watched: its [`Observer`].
pub struct Subject {
    /// The label `source` of its metrics; empty where there is one relay.
    name: String,
    figures: Mutex<Figures>,
    health: Mutex<Health>,
    pulses: watch::Sender<Option<Instant>>,
}

/// What a relay works with, to be looked at.
pub struct Surroundings {
    /// Its store.
    pub store: Arc<dyn RelayStore>,
    /// Tells whether the tables are what they should be.
    pub migrate: Option<Arc<dyn MigrateStore>>,
    /// Its sinks, by name.
    pub sinks: Vec<(Arc<str>, Arc<dyn Sink>)>,
}

impl Subject {
    pub(crate) fn new(name: &str, topics: usize, with_durations: bool, stall_after: Duration) -> Self {
        Self {
            name: name.to_owned(),
            figures: Mutex::new(Figures::new(topics, with_durations)),
            health: Mutex::new(Health::new(stall_after)),
            pulses: watch::channel(None).0,
        }
    }

    /// How the outbox is, from a relay of another make, which was asked then: where there is one of ours, the watch asks
    /// its store.
    pub fn tell_vitals(&self, asked: Instant, vitals: Vitals) {
        let now = Instant::now();
        self.figures().clock = Some(Clock::new(asked, now, vitals.now));
        self.health().looked(Some(vitals), now);
    }

    /// The same, where the database gave no answer.
    pub fn tell_unanswered(&self, why: &Error) {
        self.health().look_failed(why.to_string(), Instant::now());
    }

    /// Whether the tables of such a relay are what they should be.
    pub fn tell_schema(&self, checked: &Result<()>) {
        self.health().schema_checked(checked);
    }

    /// Whether a sink of such a relay can be reached.
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

    pub(crate) fn pulses(&self) -> watch::Receiver<Option<Instant>> {
        self.pulses.subscribe()
    }
}

impl Observer for Subject {
    fn published(&self, batch: &PublishedBatch<'_>) {
        self.figures().published(batch);
    }

    fn retried(&self, delivery: &Delivery, leg: &str) {
        self.figures().retried(&delivery.topic, leg);
    }

    fn dead_lettered(&self, delivery: &Delivery, leg: &str, reason: DeadReason) {
        self.figures().dead(&delivery.topic, leg, reason);
    }

    fn settled(&self, settled: &SettledBatch) {
        self.figures().settled(settled);
    }

    fn history_changed(&self) {
        self.figures().history_changes += 1;
    }

    fn pulse(&self, pulse: &Pulse) {
        self.health().pulse = Some(pulse.clone());
        self.pulses.send_replace(Some(pulse.at));
    }
}
