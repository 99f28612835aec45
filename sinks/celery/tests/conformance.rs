//! The sink conformance suite, on both brokers. The suite's messages are converted to tasks for the sink, and received
//! tasks are converted back to messages.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lapin::options::{BasicGetOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Connection as AmqpConnection, ConnectionProperties};
use sendoff::envelope::rfc3339;
use sendoff::sink::Limits;
use sendoff::{Outcome, Outgoing, Result, Sink, Uuid};
use sendoff_celery::CONTENT_TYPE;
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_testkit::servers::{RabbitMq, Redis};
use sendoff_testkit::sink_suite::{self, Broker, Capabilities, Connection, HeaderText, Received, Setup, SinkHarness};
use sendoff_wire::{Address, Format};
use serde_json::{Value, json};

const MAX_SIZE: usize = 100_000;

fn main() -> ExitCode {
    sink_suite::run([
        ("rabbitmq", Harness { rabbitmq: true }),
        ("redis", Harness { rabbitmq: false }),
    ])
}

struct Harness {
    rabbitmq: bool,
}

#[async_trait]
impl SinkHarness for Harness {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // A task has only one format, which the suite calls this.
            formats: &[Format::Raw],
            attribute_prefix: "",
            headers: HeaderText::Unicode,
            max_size: Some(MAX_SIZE),
            // A Redis list exists as soon as it has an element.
            unroutable: self.rabbitmq,
            restart: true,
            handshake: true,
        }
    }

    async fn fresh(&self, setup: Setup) -> Result<Box<dyn Broker>> {
        let server = match (self.rabbitmq, setup.private) {
            (true, true) => Server::Own(RabbitMq::start().await),
            (true, false) => Server::Shared(RabbitMq::shared().url().to_owned()),
            (false, _) => Server::Redis(Redis::start().await),
        };
        let broker = OwnQueue {
            server,
            queue: format!("suite-{}", Uuid::now_v7()),
            received: Vec::new(),
        };
        if self.rabbitmq {
            let connection = broker.consumer().await;
            let options = QueueDeclareOptions {
                durable: true,
                ..QueueDeclareOptions::default()
            };
            let channel = connection.create_channel().await.unwrap();
            let declared = channel.queue_declare(broker.queue.as_str().into(), options, FieldTable::default());
            declared.await.unwrap();
        }
        Ok(Box::new(broker))
    }
}

enum Server {
    Own(RabbitMq),
    Shared(String),
    Redis(Redis),
}

/// A queue for one test.
struct OwnQueue {
    server: Server,
    queue: String,
    received: Vec<Received>,
}

impl OwnQueue {
    fn url(&self) -> String {
        match &self.server {
            Server::Own(broker) => broker.url(),
            Server::Shared(url) => url.clone(),
            Server::Redis(redis) => redis.url(),
        }
    }

    async fn consumer(&self) -> AmqpConnection {
        AmqpConnection::connect(&self.url(), ConnectionProperties::default())
            .await
            .unwrap()
    }
}

#[async_trait]
impl Broker for OwnQueue {
    fn port(&self) -> u16 {
        Address::parse(&self.url()).unwrap().reveal().port().unwrap()
    }

    fn sink(&self, connection: &Connection) -> Result<Arc<dyn Sink>> {
        let on_redis = matches!(self.server, Server::Redis(_));
        let scheme = if on_redis { "redis://" } else { "amqp://guest@" };
        let password = connection.password.as_deref();
        let config = CeleryConfig {
            url: Some(Address::parse(&format!("{scheme}127.0.0.1:{}", connection.port))?),
            password: password.or((!on_redis).then_some("guest")).map(Into::into),
            default_queue: self.queue.clone(),
            declare: Declare::Off,
            max_message_bytes: Some(MAX_SIZE),
            confirm_timeout: Duration::from_secs(5),
            ..CeleryConfig::default()
        };
        Ok(Arc::new(AsTasks(CelerySink::new(&config)?)))
    }

    async fn received(&mut self) -> Vec<Received> {
        if let Server::Redis(redis) = &self.server {
            let client = redis::Client::open(redis.url()).unwrap();
            let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
            let connecting = client.get_multiplexed_async_connection_with_config(&config);
            let mut connection = connecting.await.unwrap();
            let range = redis::cmd("LRANGE").arg(&self.queue).arg(0).arg(-1).to_owned();
            let envelopes: Vec<String> = range.query_async(&mut connection).await.unwrap();
            // The oldest element is at the end of the list.
            return envelopes.iter().rev().map(|envelope| of_redis(envelope)).collect();
        }
        let connection = self.consumer().await;
        let channel = connection.create_channel().await.unwrap();
        let options = BasicGetOptions { no_ack: true };
        while let Some(message) = channel.basic_get(self.queue.as_str().into(), options).await.unwrap() {
            let headers = message.delivery.properties.headers().as_ref().unwrap().inner();
            let headers = headers.iter().filter_map(|(name, value)| {
                let text = value.as_long_string()?.to_string();
                Some((name.to_string(), text))
            });
            self.received.push(of_task(headers.collect(), &message.delivery.data));
        }
        self.received.clone()
    }

    fn make_unroutable(&self, outgoing: &mut Outgoing) {
        outgoing.headers.insert("suite-queue", "there-is-none");
    }

    async fn kill(&mut self) {
        match &mut self.server {
            Server::Own(broker) => broker.kill(),
            Server::Redis(redis) => redis.kill(),
            Server::Shared(_) => panic!("the server is shared"),
        }
    }

    async fn restart(&mut self) {
        match &mut self.server {
            Server::Own(broker) => broker.restart().await,
            Server::Redis(redis) => redis.restart().await,
            Server::Shared(_) => panic!("the server is shared"),
        }
    }
}

/// Converts every message to a task, because the Celery sink accepts nothing else. Fields without a counterpart become
/// headers.
struct AsTasks(CelerySink);

#[async_trait]
impl Sink for AsTasks {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let tasks: Vec<Arc<Outgoing>> = batch.iter().map(|outgoing| Arc::new(task(outgoing))).collect();
        self.0.publish(&tasks).await
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    async fn check(&self) -> Result<()> {
        self.0.check().await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

fn task(outgoing: &Outgoing) -> Outgoing {
    let mut task = outgoing.clone();
    let queue = outgoing.headers.get("suite-queue");
    let payload = json!({"args": [STANDARD.encode(&outgoing.payload)], "options": {"queue": queue}});
    task.payload = payload.to_string().into();
    task.headers.insert("suite-content-type", outgoing.content_type());
    task.headers.insert("sendoff-created-at", rfc3339(outgoing.created_at));
    if let Some(key) = &outgoing.key {
        task.headers.insert("sendoff-key", key);
    }
    task.content_type = Some(CONTENT_TYPE.to_owned());
    task
}

fn of_redis(envelope: &str) -> Received {
    let envelope: Value = serde_json::from_str(envelope).unwrap();
    let headers = envelope["headers"].as_object().unwrap().iter();
    let headers = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let body = STANDARD.decode(envelope["body"].as_str().unwrap()).unwrap();
    of_task(headers.collect(), &body)
}

fn of_task(mut headers: Vec<(String, String)>, body: &[u8]) -> Received {
    let named = |wanted: &str| {
        let found = headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).unwrap()
    };
    let (id, topic, content_type) = (named("id"), named("task"), named("suite-content-type"));
    headers.push(("sendoff-id".to_owned(), id));
    headers.push(("sendoff-topic".to_owned(), topic));
    let body: Value = serde_json::from_slice(body).unwrap();
    Received {
        content_type: Some(content_type),
        headers,
        body: STANDARD.decode(body[0][0].as_str().unwrap()).unwrap().into(),
    }
}
