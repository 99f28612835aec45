//! Counts deadlocks and lock timeouts: those that a store retried itself, and those that reached a caller or the log.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, Registry};

/// The server's texts for a deadlock (1213) and a lock timeout (1205).
const WORDS: [&str; 2] = ["Deadlock found", "Lock wait timeout exceeded"];

/// The counts so far.
#[derive(Clone, Default)]
pub(crate) struct Conflicts(Arc<Counts>);

#[derive(Default)]
struct Counts {
    surfaced: AtomicU64,
    retried: AtomicU64,
}

impl Conflicts {
    /// Starts counting, for the whole process: relays report errors in their log.
    pub(crate) fn watch() -> Result<Self> {
        let conflicts = Self::default();
        let told = Targets::new()
            .with_target("sendoff_store_mysql", Level::DEBUG)
            .with_default(Level::WARN);
        tracing::subscriber::set_global_default(Registry::default().with(conflicts.clone().with_filter(told)))?;
        Ok(conflicts)
    }

    /// Counts an error that a caller got. Returns whether it was a conflict, so that the call can be repeated.
    pub(crate) fn saw(&self, error: &sendoff::Error) -> bool {
        let is_conflict = is_conflict(&error.to_string());
        if is_conflict {
            self.0.surfaced.fetch_add(1, Ordering::Relaxed);
        }
        is_conflict
    }

    /// How many surfaced, and how many the store retried, since the last call.
    pub(crate) fn take(&self) -> (u64, u64) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        (take(&self.0.surfaced), take(&self.0.retried))
    }
}

impl<S: Subscriber> Layer<S> for Conflicts {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut told = Told::default();
        event.record(&mut told);
        let count = match *event.metadata().level() {
            Level::ERROR | Level::WARN if is_conflict(&told.0) => &self.0.surfaced,
            Level::DEBUG if told.0.contains("transaction_conflict") => &self.0.retried,
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn is_conflict(text: &str) -> bool {
    WORDS.iter().any(|words| text.contains(words))
}

/// All fields of an event, as text.
#[derive(Default)]
struct Told(String);

impl Visit for Told {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{value:?} ");
    }
}
