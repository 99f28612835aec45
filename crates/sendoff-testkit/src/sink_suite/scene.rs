//! A broker with a wire that can be cut, and what cases do with them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sendoff::{Outcome, Outgoing, Sink, Uuid};
use sendoff_wire::Format;
use tokio::time::{Instant, sleep, timeout};

use super::copy::Copy;
use super::message::numbered;
use super::{Broker, Capabilities, Connection};
use crate::FaultProxy;

/// How long a case waits for something that must happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// What a case works with.
pub(super) struct Scene {
    pub(super) broker: Box<dyn Broker>,
    pub(super) proxy: FaultProxy,
    pub(super) capabilities: Capabilities,
    format: Format,
}

impl Scene {
    pub(super) async fn new(mut broker: Box<dyn Broker>, capabilities: Capabilities) -> Self {
        let proxy = FaultProxy::start(broker.port()).await;
        broker.reached_by(proxy.port()).await;
        let format = *capabilities.formats.first().expect("a sink has a format");
        Self {
            broker,
            proxy,
            capabilities,
            format,
        }
    }

    /// A sink that reaches the broker through the proxy.
    pub(super) fn sink(&self) -> Arc<dyn Sink> {
        self.sink_at(self.proxy.port(), None)
    }

    /// A sink that reaches the broker by itself.
    pub(super) fn direct_sink(&self) -> Arc<dyn Sink> {
        self.sink_at(self.broker.port(), None)
    }

    pub(super) fn sink_at(&self, port: u16, password: Option<&str>) -> Arc<dyn Sink> {
        let connection = Connection {
            port,
            format: self.format,
            password: password.map(str::to_owned),
        };
        self.broker.sink(&connection).expect("settings that can be used")
    }

    /// From now on, write and read this format.
    pub(super) fn use_format(&mut self, format: Format) {
        self.format = format;
    }

    /// A sink through the proxy that has delivered something: it is connected.
    pub(super) async fn connected_sink(&self) -> Arc<dyn Sink> {
        let sink = self.sink();
        assert_eq!(sink.publish(&[numbered(0)]).await, [Outcome::Delivered]);
        sink
    }

    /// A message that can never be delivered, if the sink can tell one.
    pub(super) fn poison(&self) -> Option<Arc<Outgoing>> {
        let mut poison = (*numbered(666)).clone();
        if self.capabilities.unroutable {
            self.broker.make_unroutable(&mut poison);
        } else {
            let size = self.capabilities.max_size? + 1;
            poison.payload = vec![b'x'; size].into();
            poison.content_type = Some("application/octet-stream".to_owned());
        }
        Some(poison.into())
    }

    /// Everything that was received so far, in order.
    pub(super) async fn copies(&mut self) -> Vec<Copy> {
        let received = self.broker.received().await;
        let read = |received| Copy::read(received, self.format, self.capabilities);
        received.iter().map(read).collect()
    }

    /// Waits until all of these have been received, and returns the first copy of each, in the order of the batch.
    pub(super) async fn copies_of(&mut self, batch: &[Arc<Outgoing>]) -> Vec<Copy> {
        let began = Instant::now();
        loop {
            let copies = self.copies().await;
            let first = |outgoing: &Arc<Outgoing>| copies.iter().find(|copy| copy.id == outgoing.id).cloned();
            let found: Vec<Copy> = batch.iter().filter_map(first).collect();
            if found.len() == batch.len() {
                return found;
            }
            let waited = began.elapsed();
            assert!(
                waited < PATIENCE,
                "{} of {} messages arrived in {waited:?}",
                found.len(),
                batch.len()
            );
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// How many copies there are of each message.
    pub(super) async fn counts(&mut self) -> HashMap<Uuid, usize> {
        let mut counts = HashMap::new();
        for copy in self.copies().await {
            *counts.entry(copy.id).or_default() += 1;
        }
        counts
    }

    /// Publishes what is not delivered yet, again and again, until all is. Returns how often each message was published.
    pub(super) async fn deliver(&self, sink: &Arc<dyn Sink>, batch: &[Arc<Outgoing>]) -> usize {
        let mut left: Vec<Arc<Outgoing>> = batch.to_vec();
        let (began, mut rounds) = (Instant::now(), 0);
        while !left.is_empty() {
            let outcomes = publish(sink, &left).await;
            rounds += 1;
            let delivered: HashSet<Uuid> = delivered(&left, &outcomes).collect();
            left.retain(|outgoing| !delivered.contains(&outgoing.id));
            let waited = began.elapsed();
            assert!(waited < PATIENCE, "not delivered after {waited:?}: {outcomes:?}");
            if !left.is_empty() {
                sleep(Duration::from_millis(50)).await;
            }
        }
        rounds
    }
}

/// Publishes, and checks what holds always: it ends, and there is an outcome for each.
pub(super) async fn publish(sink: &Arc<dyn Sink>, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
    let outcomes = timeout(PATIENCE, sink.publish(batch)).await;
    let outcomes = outcomes.unwrap_or_else(|_| panic!("publish has not ended after {PATIENCE:?}"));
    assert_eq!(outcomes.len(), batch.len(), "one outcome a message: {outcomes:?}");
    outcomes
}

/// Which messages were delivered.
pub(super) fn delivered<'a>(batch: &'a [Arc<Outgoing>], outcomes: &'a [Outcome]) -> impl Iterator<Item = Uuid> + 'a {
    batch
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| **outcome == Outcome::Delivered)
        .map(|(outgoing, _)| outgoing.id)
}

/// The words of an outcome.
pub(super) fn reason(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Delivered => "",
        Outcome::Temporary(reason)
        | Outcome::Permanent(reason)
        | Outcome::Unknown(reason)
        | Outcome::SinkDown(reason)
        | Outcome::NotYet(reason) => reason.text(),
    }
}
