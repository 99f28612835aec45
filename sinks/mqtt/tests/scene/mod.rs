//! Messages to publish, and a subscriber with another client library.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::sync::Arc;
use std::time::Duration;

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, Publish};
use rumqttc::v5::{AsyncClient, Event, MqttOptions};
use sendoff::{Outcome, Outgoing, Sink as _};
use sendoff_sink_mqtt::{MqttConfig, MqttSink};
use sendoff_testkit::outgoing;
use sendoff_testkit::servers::Mosquitto;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

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

pub(crate) fn config(broker: &Mosquitto) -> MqttConfig {
    MqttConfig {
        ack_timeout: Duration::from_millis(1500),
        connect_timeout: Duration::from_millis(1500),
        ..MqttConfig::new(&broker.url()).unwrap()
    }
}

/// Long timeouts, so that a busy machine does not look like an outage.
pub(crate) fn patient(broker: &Mosquitto) -> MqttConfig {
    MqttConfig {
        ack_timeout: Duration::from_secs(30),
        connect_timeout: Duration::from_secs(30),
        ..config(broker)
    }
}

pub(crate) fn sink(broker: &Mosquitto) -> MqttSink {
    MqttSink::new(config(broker)).unwrap()
}

/// A subscriber to all topics.
pub(crate) struct Subscriber {
    _client: AsyncClient,
    received: UnboundedReceiver<Publish>,
}

impl Subscriber {
    pub(crate) async fn start(broker: &Mosquitto) -> Self {
        Self::start_as(broker, None).await
    }

    pub(crate) async fn start_as(broker: &Mosquitto, user: Option<(&str, &str)>) -> Self {
        let mut options = MqttOptions::new("reader", "127.0.0.1", broker.port());
        if let Some((user, password)) = user {
            options.set_credentials(user, password);
        }
        let (client, mut events) = AsyncClient::new(options, 10);
        client.subscribe("#", QoS::ExactlyOnce).await.unwrap();
        let (sender, received) = unbounded_channel();
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let mut ready = Some(ready);
        tokio::spawn(async move {
            while let Ok(event) = events.poll().await {
                match event {
                    Event::Incoming(Packet::SubAck(_)) => drop(ready.take().unwrap().send(())),
                    Event::Incoming(Packet::Publish(publish)) => drop(sender.send(publish)),
                    _ => {}
                }
            }
        });
        is_ready.await.unwrap();
        Self {
            _client: client,
            received,
        }
    }

    pub(crate) async fn next(&mut self, count: usize) -> Vec<Publish> {
        let mut messages = Vec::new();
        while messages.len() < count {
            let next = timeout(Duration::from_secs(10), self.received.recv()).await;
            messages.push(next.expect("another message must arrive").unwrap());
        }
        messages
    }
}

pub(crate) async fn delivers(sink: &MqttSink, batch: &[Arc<Outgoing>]) {
    assert_eq!(sink.publish(batch).await, vec![Outcome::Delivered; batch.len()]);
}

pub(crate) fn text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Delivered => "",
        Outcome::Temporary(reason) | Outcome::Permanent(reason) => reason.text(),
        Outcome::Unknown(reason) | Outcome::SinkDown(reason) | Outcome::NotYet(reason) => reason.text(),
    }
}
