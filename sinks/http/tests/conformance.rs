//! The sink conformance suite, against a real server with HTTP/2 over TLS.
//!
//! Without TLS the server sends nothing before the request, so a server that closes every connection cannot be
//! distinguished from one that received the message: the outcome is unknown, as `http/silence.rs` proves. And HTTP/1.1
//! takes one connection per request, so a proxy that delays answers would also delay the handshakes of new connections.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

#[path = "http/authority.rs"]
mod authority;
#[path = "http/server.rs"]
#[allow(dead_code, reason = "the other test binary uses all of it")]
mod server;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use authority::Authority;
use sendoff::{Outgoing, Result, Sink};
use sendoff_sink_http::{Endpoint, HttpConfig, HttpSink};
use sendoff_testkit::sink_suite::{self, Broker, Capabilities, Connection, HeaderText, Received, Setup, SinkHarness};
use sendoff_wire::{Format, Secret, TlsConfig};
use server::{Seen, Server, answer};

const PASSWORD: &str = "the-right-one";
/// The sink's own limit. The endpoint may have one, too, but a 413 does not include it.
const LIMIT: usize = 1 << 20;
/// A topic that the server answers with 404.
const UNKNOWN: &str = "nobody.listens";

struct Http;

struct Endpoints {
    server: Option<Server>,
    port: u16,
    authority: Arc<Authority>,
    taken: Arc<Mutex<Vec<Seen>>>,
}

impl Endpoints {
    async fn start(&mut self) {
        let taken = Arc::clone(&self.taken);
        let tls = self.authority.acceptor("127.0.0.1", &[b"h2"]);
        let server = Server::on(([127, 0, 0, 1], self.port).into(), Some(tls), move |seen| {
            let status = match seen.header("authorization") {
                text if text != PASSWORD => 401,
                _ if seen.headers.get("x-topic").is_some_and(|topic| topic == UNKNOWN) => 404,
                _ => {
                    taken.lock().unwrap().push(seen);
                    200
                }
            };
            async move { answer(status) }
        })
        .await;
        self.port = server.address.port();
        self.server = Some(server);
    }
}

#[async_trait]
impl SinkHarness for Http {
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
        let mut endpoints = Endpoints {
            server: None,
            port: 0,
            authority: Arc::new(Authority::new()),
            taken: Arc::default(),
        };
        endpoints.start().await;
        Ok(Box::new(endpoints))
    }
}

#[async_trait]
impl Broker for Endpoints {
    fn port(&self) -> u16 {
        self.port
    }

    fn sink(&self, connection: &Connection) -> Result<Arc<dyn Sink>> {
        let url = format!("https://127.0.0.1:{}/hook", connection.port);
        let mut config = HttpConfig::new(Endpoint::parse(&url)?);
        config.allow_private = vec!["127.0.0.0/8".parse().unwrap()];
        config.format = connection.format;
        config.max_message_bytes = Some(LIMIT);
        config.tls = Some(TlsConfig {
            ca_file: Some(self.authority.file()),
            ..TlsConfig::default()
        });
        config.connect_timeout = Duration::from_secs(2);
        config.request_timeout = Duration::from_secs(3);
        let password = connection.password.as_deref().unwrap_or(PASSWORD);
        let password = Secret::from(password);
        config.headers.insert("authorization".into(), password.into());
        Ok(Arc::new(HttpSink::new(config)?))
    }

    async fn received(&mut self) -> Vec<Received> {
        let taken = self.taken.lock().unwrap();
        let received = taken.iter().map(|seen| Received {
            content_type: Some(seen.header("content-type").to_owned()),
            headers: seen
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
                .collect(),
            body: seen.body.clone(),
        });
        received.collect()
    }

    fn make_unroutable(&self, outgoing: &mut Outgoing) {
        outgoing.headers.insert("x-topic", UNKNOWN);
    }

    async fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await;
        }
    }

    async fn restart(&mut self) {
        self.start().await;
    }
}

fn main() -> ExitCode {
    sink_suite::run([("http2", Http)])
}
