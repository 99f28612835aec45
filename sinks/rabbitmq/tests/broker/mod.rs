//! Messages to publish, and queues with their content.
#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lapin::message::BasicGetMessage;
use lapin::options::{BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Connection, ConnectionProperties, ExchangeKind};
use sendoff::{Outcome, Outgoing, Uuid};
use sendoff_sink_rabbitmq::{RabbitMqConfig, RabbitMqSink};
use sendoff_testkit::outgoing;

/// A message with this topic, which is its routing key.
pub(crate) fn message(topic: &str) -> Outgoing {
    Outgoing {
        created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        ..outgoing(topic, "{}")
    }
}

pub(crate) fn batch(topics: impl IntoIterator<Item = impl ToString>) -> Vec<Arc<Outgoing>> {
    topics
        .into_iter()
        .map(|topic| Arc::new(message(&topic.to_string())))
        .collect()
}

pub(crate) fn ids(batch: &[Arc<Outgoing>]) -> Vec<String> {
    batch.iter().map(|outgoing| outgoing.id.to_string()).collect()
}

/// A name that no other test uses.
pub(crate) fn name(what: &str) -> String {
    format!("{what}-{}", Uuid::now_v7())
}

pub(crate) fn sink(config: RabbitMqConfig) -> RabbitMqSink {
    RabbitMqSink::new(config).unwrap()
}

/// A sink for the default exchange: topics are names of queues.
pub(crate) fn to_queues(url: &str) -> RabbitMqConfig {
    RabbitMqConfig::new(url, "").unwrap()
}

#[track_caller]
pub(crate) fn all_delivered(outcomes: &[Outcome]) {
    let other = outcomes.iter().find(|outcome| **outcome != Outcome::Delivered);
    assert_eq!(other, None);
}

#[track_caller]
pub(crate) fn permanent(outcome: &Outcome, words: &[&str]) {
    let Outcome::Permanent(reason) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(words.iter().all(|word| reason.text().contains(word)), "{reason:?}");
}

#[track_caller]
pub(crate) fn down(outcome: &Outcome, words: &[&str]) {
    let Outcome::SinkDown(reason) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(words.iter().all(|word| reason.text().contains(word)), "{reason:?}");
}

/// A client that declares and consumes.
pub(crate) struct Consumer {
    pub(crate) channel: Channel,
    _connection: Connection,
}

impl Consumer {
    pub(crate) async fn connect(url: &str) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
        Self {
            channel: connection.create_channel().await.unwrap(),
            _connection: connection,
        }
    }

    /// A new durable queue.
    pub(crate) async fn queue(&self, arguments: &[(&str, AMQPValue)]) -> String {
        let queue = name("queue");
        let mut table = FieldTable::default();
        for (name, value) in arguments {
            table.insert((*name).into(), value.clone());
        }
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        self.channel
            .queue_declare(queue.as_str().into(), options, table)
            .await
            .unwrap();
        queue
    }

    pub(crate) async fn exchange(&self, kind: ExchangeKind) -> String {
        let exchange = name("exchange");
        let options = ExchangeDeclareOptions::default();
        let declared = self
            .channel
            .exchange_declare(exchange.as_str().into(), kind, options, FieldTable::default());
        declared.await.unwrap();
        exchange
    }

    pub(crate) async fn bind(&self, queue: &str, exchange: &str, key: &str, arguments: FieldTable) {
        let short = |text: &str| ShortString::from(text);
        let options = QueueBindOptions::default();
        let bound = self
            .channel
            .queue_bind(short(queue), short(exchange), short(key), options, arguments);
        bound.await.unwrap();
    }

    /// The next message, if there is one.
    pub(crate) async fn get(&self, queue: &str) -> Option<BasicGetMessage> {
        self.channel
            .basic_get(queue.into(), BasicGetOptions { no_ack: true })
            .await
            .unwrap()
    }

    /// The ids of all messages in a queue, in order.
    pub(crate) async fn drain(&self, queue: &str) -> Vec<String> {
        let mut ids = Vec::new();
        while let Some(message) = self.get(queue).await {
            ids.push(message.properties.message_id().as_ref().unwrap().to_string());
        }
        ids
    }
}
