//! The sink conformance suite, on a real RabbitMQ.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lapin::ExchangeKind;
use lapin::message::BasicGetMessage;
use lapin::options::ExchangeDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use sendoff::{Outgoing, Result, Sink};
use sendoff_sink_rabbitmq::{RabbitMqConfig, RabbitMqSink};
use sendoff_testkit::servers::RabbitMq;
use sendoff_testkit::sink_suite::{self, Broker, Capabilities, Connection, HeaderText, Received, Setup, SinkHarness};
use sendoff_wire::{Address, Format};

mod broker;
use broker::{Consumer, name};

const MAX_SIZE: usize = 100_000;

fn main() -> ExitCode {
    sink_suite::run([("rabbitmq", Harness)])
}

struct Harness;

/// A new exchange with one queue, which gets all messages except those with a certain header.
struct OwnQueue {
    private: Option<RabbitMq>,
    url: String,
    exchange: String,
    queue: String,
    received: Vec<Received>,
}

#[async_trait]
impl SinkHarness for Harness {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            formats: &[
                Format::Raw,
                Format::Envelope,
                Format::CloudEvents,
                Format::CloudEventsBinary,
            ],
            attribute_prefix: "cloudEvents:",
            headers: HeaderText::Unicode,
            max_size: Some(MAX_SIZE),
            unroutable: true,
            restart: true,
            handshake: true,
        }
    }

    async fn fresh(&self, setup: Setup) -> Result<Box<dyn Broker>> {
        let private = if setup.private {
            Some(RabbitMq::start().await)
        } else {
            None
        };
        let url = match &private {
            Some(broker) => broker.url(),
            None => RabbitMq::shared().url().to_owned(),
        };
        let consumer = Consumer::connect(&url).await;
        let (exchange, queue) = (name("exchange"), consumer.queue(&[]).await);
        let options = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        let kind = ExchangeKind::Topic;
        let declared =
            consumer
                .channel
                .exchange_declare(exchange.as_str().into(), kind, options, FieldTable::default());
        declared.await.unwrap();
        consumer.bind(&queue, &exchange, "known.#", FieldTable::default()).await;
        Ok(Box::new(OwnQueue {
            private,
            url,
            exchange,
            queue,
            received: Vec::new(),
        }))
    }
}

#[async_trait]
impl Broker for OwnQueue {
    fn port(&self) -> u16 {
        Address::parse(&self.url).unwrap().reveal().port().unwrap()
    }

    fn sink(&self, connection: &Connection) -> Result<Arc<dyn Sink>> {
        let url = format!("amqp://guest@127.0.0.1:{}", connection.port);
        let mut config = RabbitMqConfig::new(&url, &self.exchange)?;
        config.password = Some(connection.password.as_deref().unwrap_or("guest").into());
        config.routing_key = "{header:route|known}.{topic}".parse()?;
        config.format = connection.format;
        config.max_message_bytes = MAX_SIZE;
        config.confirm_timeout = Duration::from_secs(5);
        Ok(Arc::new(RabbitMqSink::new(config)?))
    }

    async fn received(&mut self) -> Vec<Received> {
        let consumer = Consumer::connect(&self.url).await;
        while let Some(message) = consumer.get(&self.queue).await {
            self.received.push(received(message));
        }
        self.received.clone()
    }

    fn make_unroutable(&self, outgoing: &mut Outgoing) {
        outgoing.headers.insert("route", "unknown");
    }

    async fn kill(&mut self) {
        self.private.as_mut().unwrap().kill();
    }

    async fn restart(&mut self) {
        self.private.as_mut().unwrap().restart().await;
    }
}

fn received(message: BasicGetMessage) -> Received {
    let outgoing = message.delivery;
    let text = |value: &AMQPValue| value.as_long_string().map(ToString::to_string);
    let headers = outgoing.properties.headers().as_ref().unwrap().inner();
    let headers = headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value).unwrap()));
    Received {
        content_type: outgoing.properties.content_type().as_ref().map(ToString::to_string),
        headers: headers.collect(),
        body: outgoing.data.into(),
    }
}
