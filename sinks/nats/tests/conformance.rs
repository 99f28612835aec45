//! The sink conformance suite, on a real server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap fails the test"
)]

use std::sync::Arc;
use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::stream::{Config, Stream};
use async_trait::async_trait;
use futures::StreamExt as _;
use sendoff::{Outgoing, Result, Sink};
use sendoff_sink_nats::{NatsConfig, NatsSink};
use sendoff_testkit::servers::{Nats, Options};
use sendoff_testkit::sink_suite::{Broker, Capabilities, Connection, HeaderText, Received, Setup, SinkHarness, run};
use sendoff_wire::Format;

const PASSWORD: &str = "the right one";
const LIMIT: usize = 100_000;

struct Harness;

struct Server {
    nats: Nats,
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
            attribute_prefix: "ce-",
            headers: HeaderText::Unicode,
            max_size: Some(LIMIT),
            unroutable: true,
            restart: true,
            handshake: true,
        }
    }

    async fn fresh(&self, _setup: Setup) -> Result<Box<dyn Broker>> {
        let lines = [
            format!("max_payload: {LIMIT}"),
            format!("authorization {{ user: app, password: \"{PASSWORD}\" }}"),
        ];
        let server = Server {
            nats: Nats::start_with(Options::lines(lines)).await,
        };
        server.stream().await;
        Ok(Box::new(server))
    }
}

impl Server {
    async fn stream(&self) -> Stream {
        let options = ConnectOptions::with_user_and_password("app".to_owned(), PASSWORD.to_owned());
        let client = options.connect(self.nats.url()).await.unwrap();
        let config = Config {
            name: "suite".to_owned(),
            subjects: vec!["suite.>".to_owned()],
            ..Config::default()
        };
        async_nats::jetstream::new(client)
            .get_or_create_stream(config)
            .await
            .unwrap()
    }
}

#[async_trait]
impl Broker for Server {
    fn port(&self) -> u16 {
        self.nats.port()
    }

    fn sink(&self, connection: &Connection) -> Result<Arc<dyn Sink>> {
        let password = connection.password.as_deref().unwrap_or(PASSWORD);
        let config = NatsConfig {
            format: connection.format,
            user: Some("app".to_owned()),
            password: Some(password.into()),
            ack_timeout: Duration::from_secs(3),
            ..NatsConfig::new(&format!("nats://127.0.0.1:{}", connection.port))?
        };
        Ok(Arc::new(NatsSink::new(config)?))
    }

    async fn received(&mut self) -> Vec<Received> {
        let mut stream = self.stream().await;
        let last = stream.info().await.unwrap().state.last_sequence;
        let stream = &stream;
        let messages = (1..=last).map(|sequence| async move { stream.get_raw_message(sequence).await.unwrap() });
        let messages = futures::stream::iter(messages).buffered(100);
        let read = messages.map(|message| {
            let text = |name: &str| message.headers.get(name).map(|value| value.as_str().to_owned());
            let headers = message
                .headers
                .iter()
                .map(|(name, values)| (name.to_string(), values[0].as_str().to_owned()));
            Received {
                content_type: text("Content-Type"),
                headers: headers.filter(|(name, _)| name != "Content-Type").collect(),
                body: message.payload,
            }
        });
        read.collect().await
    }

    fn make_unroutable(&self, outgoing: &mut Outgoing) {
        outgoing.topic = "nobody.listens".to_owned();
    }

    async fn kill(&mut self) {
        self.nats.kill();
    }

    async fn restart(&mut self) {
        self.nats.restart().await;
    }
}

fn main() -> std::process::ExitCode {
    run([("nats", Harness)])
}
