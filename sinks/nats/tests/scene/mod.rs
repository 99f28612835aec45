//! Messages to publish, and a reader of the streams.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, Context, stream};
use sendoff::{Outcome, Outgoing, Sink as _};
use sendoff_sink_nats::{NatsConfig, NatsSink};
use sendoff_testkit::outgoing;
use sendoff_testkit::servers::Nats;

pub(crate) fn message(topic: &str, payload: impl Into<Vec<u8>>) -> Outgoing {
    Outgoing {
        key: Some("customer-7".into()),
        ..outgoing(topic, payload.into())
    }
}

pub(crate) fn batch(topic: &str, size: usize) -> Vec<Arc<Outgoing>> {
    let one = |number: usize| Arc::new(message(topic, number.to_string()));
    (0..size).map(one).collect()
}

pub(crate) fn config(nats: &Nats) -> NatsConfig {
    NatsConfig {
        ack_timeout: Duration::from_millis(1500),
        connect_timeout: Duration::from_millis(1500),
        ..NatsConfig::new(&nats.url()).unwrap()
    }
}

pub(crate) fn sink(nats: &Nats) -> NatsSink {
    NatsSink::new(config(nats)).unwrap()
}

/// A client that is independent of the sink.
pub(crate) async fn reader(nats: &Nats) -> Context {
    jetstream::new(async_nats::connect(nats.url()).await.unwrap())
}

pub(crate) async fn stream(reader: &Context, config: stream::Config) -> stream::Stream {
    reader.create_stream(config).await.unwrap()
}

/// A stream `orders` that covers `orders.>`.
pub(crate) fn orders() -> stream::Config {
    stream::Config {
        name: "orders".into(),
        subjects: vec!["orders.>".into()],
        ..stream::Config::default()
    }
}

/// All messages of the stream, oldest first.
pub(crate) async fn stored(reader: &Context) -> Vec<async_nats::jetstream::message::StreamMessage> {
    let mut stream = reader.get_stream("orders").await.unwrap();
    let last = stream.info().await.unwrap().state.last_sequence;
    let mut messages = Vec::new();
    for sequence in 1..=last {
        messages.push(stream.get_raw_message(sequence).await.unwrap());
    }
    messages
}

/// Pauses the server, and waits until it greets no new connection.
pub(crate) async fn pause(nats: &Nats) {
    use tokio::io::AsyncReadExt as _;
    nats.pause();
    loop {
        let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", nats.port()))
            .await
            .unwrap();
        let greeting = socket.read_u8();
        if tokio::time::timeout(Duration::from_millis(200), greeting)
            .await
            .is_err()
        {
            return;
        }
    }
}

pub(crate) async fn delivers(sink: &NatsSink, batch: &[Arc<Outgoing>]) {
    assert_eq!(sink.publish(batch).await, vec![Outcome::Delivered; batch.len()]);
}

pub(crate) fn text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Delivered => "",
        Outcome::Temporary(reason) | Outcome::Permanent(reason) => reason.text(),
        Outcome::Unknown(reason) | Outcome::SinkDown(reason) | Outcome::NotYet(reason) => reason.text(),
    }
}
