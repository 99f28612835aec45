//! Messages to publish, and a reader on the other side.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, Context, stream};
use sendoff::{Delivery, Outcome, Sink as _};
use sendoff_sink_nats::{NatsConfig, NatsSink};
use sendoff_testkit::delivery;
use sendoff_testkit::servers::Nats;

pub(crate) fn message(topic: &str, payload: impl Into<Vec<u8>>) -> Delivery {
    Delivery {
        key: Some("customer-7".into()),
        ..delivery(topic, payload.into())
    }
}

pub(crate) fn batch(topic: &str, size: usize) -> Vec<Arc<Delivery>> {
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

/// A client of the server's own, beside the sink.
pub(crate) async fn reader(nats: &Nats) -> Context {
    jetstream::new(async_nats::connect(nats.url()).await.unwrap())
}

pub(crate) async fn stream(reader: &Context, config: stream::Config) -> stream::Stream {
    reader.create_stream(config).await.unwrap()
}

/// A stream called `orders` that covers `orders.>`.
pub(crate) fn orders() -> stream::Config {
    stream::Config {
        name: "orders".into(),
        subjects: vec!["orders.>".into()],
        ..stream::Config::default()
    }
}

/// Everything in the stream, oldest first.
pub(crate) async fn stored(reader: &Context) -> Vec<async_nats::jetstream::message::StreamMessage> {
    let mut stream = reader.get_stream("orders").await.unwrap();
    let last = stream.info().await.unwrap().state.last_sequence;
    let mut messages = Vec::new();
    for sequence in 1..=last {
        messages.push(stream.get_raw_message(sequence).await.unwrap());
    }
    messages
}

/// Pauses the server, and waits until all its threads have stopped: until nobody is greeted any more.
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

pub(crate) async fn delivers(sink: &NatsSink, batch: &[Arc<Delivery>]) {
    assert_eq!(sink.publish(batch).await, vec![Outcome::Delivered; batch.len()]);
}

pub(crate) fn text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Delivered => "",
        Outcome::Temporary(reason) | Outcome::Permanent(reason) => reason.text(),
        Outcome::Unknown(reason) | Outcome::SinkDown(reason) | Outcome::NotYet(reason) => reason.text(),
    }
}
