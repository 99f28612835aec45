//! Real relays on the store under test.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::RelayStore;
use sendoff::{Outgoing, Pattern};
use sendoff_relay::{OnFailure, Relay, RelayBuilder, RetryPolicy, RunReport, Settings, TopicPolicy};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::scene::PATIENCE;
use crate::ScriptedSink;
use crate::history::Sent;

/// The sink that everything goes to.
pub(super) const SINK: &str = "sink";

/// A relay that is quick to notice things and slow to give up.
pub(super) fn relay(store: Arc<dyn RelayStore>, sink: &Arc<ScriptedSink>) -> RelayBuilder {
    Relay::builder(store)
        .sink(SINK, sink.clone())
        .route(everything(), [SINK])
        .settings(settings())
        .default_policy(policy(OnFailure::Block))
}

pub(super) fn settings() -> Settings {
    Settings {
        lease: Duration::from_secs(30),
        heartbeat: Duration::from_millis(100),
        batch: 200,
        max_in_flight: 1000,
        idle_time: Duration::from_millis(20),
        due_interval: Duration::from_millis(10),
        sweep: Duration::from_millis(500),
        ..Settings::default()
    }
}

pub(super) fn policy(head: OnFailure) -> TopicPolicy {
    TopicPolicy {
        retry: RetryPolicy {
            base: Duration::from_millis(20),
            multiplier: 1.5,
            max: Duration::from_millis(100),
            jitter: 0.5,
            attempts: 5,
        },
        on_failure: head,
    }
}

pub(super) fn everything() -> Pattern {
    pattern("*")
}

pub(super) fn pattern(text: &str) -> Pattern {
    text.parse().expect("a pattern")
}

/// A relay at work.
pub(super) struct Running {
    stop: CancellationToken,
    task: JoinHandle<sendoff::Result<RunReport>>,
}

impl Running {
    pub(super) fn start(builder: RelayBuilder) -> Self {
        let (relay, stop) = (builder.build().expect("a relay"), CancellationToken::new());
        let task = tokio::spawn(relay.run(stop.clone()));
        Self { stop, task }
    }

    /// Stops it cleanly.
    pub(super) async fn stop(self) -> sendoff::Result<RunReport> {
        self.stop.cancel();
        let report = tokio::time::timeout(PATIENCE, self.task).await;
        report.expect("it stops").expect("no panic")
    }
}

/// Waits for arrivals, and fails with what has arrived when they do not come.
pub(super) async fn arrive(sink: &ScriptedSink, messages: usize) {
    let waiting = sink.wait_for_arrivals(messages);
    if tokio::time::timeout(2 * PATIENCE, waiting).await.is_err() {
        let arrived = sink.arrivals();
        panic!("{} of {messages} messages have arrived, copies included", arrived.len());
    }
}

/// What a message of [`super::scene::numbered`] is for a history.
pub(super) fn sent(outgoing: &Outgoing) -> Sent {
    let n = String::from_utf8_lossy(&outgoing.payload).parse().expect("a number");
    Sent::new(outgoing.key.clone().expect("a key"), n)
}

/// Everything that was published of one key: number, copy, and whether it arrived.
pub(super) fn tale(sink: &ScriptedSink, key: &str) -> String {
    let published = sink.publications();
    let of_key = published
        .iter()
        .filter(|published| published.outgoing.key.as_deref() == Some(key));
    let words = of_key.map(|published| {
        let arrived = if published.arrived() { "" } else { "!" };
        let table = published.outgoing.row_ref.table;
        format!(
            "{}{arrived}({}, {table:?})",
            sent(&published.outgoing).n,
            published.copy
        )
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The numbers of what has arrived of one key, in order, copies included.
pub(super) fn numbers(sink: &ScriptedSink, key: &str) -> Vec<u64> {
    let arrivals = sink.arrivals();
    let of_key = arrivals.iter().filter(|outgoing| outgoing.key.as_deref() == Some(key));
    of_key.map(|outgoing| sent(outgoing).n).collect()
}
