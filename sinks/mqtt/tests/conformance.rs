//! The sink conformance suite, on a real broker, with both versions of the protocol.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap fails the test"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, Publish};
use rumqttc::v5::{AsyncClient, Event, MqttOptions};
use sendoff::{Result, Sink};
use sendoff_sink_mqtt::{MqttConfig, MqttSink, Version};
use sendoff_testkit::servers::{Mosquitto, Options};
use sendoff_testkit::sink_suite::{Broker, Capabilities, Connection, HeaderText, Received, Setup, SinkHarness, run};
use sendoff_wire::Format;
use tempfile::TempDir;
use tokio::sync::watch;

const PASSWORD: &str = "the-right-one";
const LIMIT: usize = 100_000;

struct Harness(Version);

#[async_trait]
impl SinkHarness for Harness {
    fn capabilities(&self) -> Capabilities {
        let (formats, headers): (&[Format], _) = match self.0 {
            Version::V5 => (
                &[
                    Format::Raw,
                    Format::Envelope,
                    Format::CloudEvents,
                    Format::CloudEventsBinary,
                ],
                HeaderText::Unicode,
            ),
            Version::V311 => (&[Format::Envelope, Format::CloudEvents], HeaderText::None),
        };
        Capabilities {
            formats,
            attribute_prefix: "",
            headers,
            max_size: Some(LIMIT),
            unroutable: false,
            restart: true,
            handshake: true,
        }
    }

    async fn fresh(&self, _setup: Setup) -> Result<Box<dyn Broker>> {
        let folder = tempfile::tempdir().unwrap();
        let users = folder.path().join("users");
        let made = std::process::Command::new("mosquitto_passwd")
            .args(["-b", "-c"])
            .args([users.as_os_str(), "app".as_ref(), PASSWORD.as_ref()])
            .status()
            .expect("mosquitto_passwd comes with the package mosquitto: use `cargo xtask test`");
        assert!(made.success());
        let lines = [
            "allow_anonymous false".to_owned(),
            format!("password_file {}", users.display()),
            format!("max_packet_size {LIMIT}"),
        ];
        let broker = Mosquitto::start_with(Options::lines(lines)).await;
        let reader = Reader::start(broker.port()).await;
        Ok(Box::new(Server {
            broker,
            reader,
            version: self.0,
            _folder: folder,
        }))
    }
}

/// Subscribes to all topics, again after every reconnect.
struct Reader {
    received: Arc<Mutex<Vec<Publish>>>,
    /// How often it has subscribed.
    subscribed: watch::Receiver<usize>,
}

impl Reader {
    async fn start(port: u16) -> Self {
        let mut options = MqttOptions::new("reader", "127.0.0.1", port);
        options.set_credentials("app", PASSWORD);
        options.set_max_packet_size(Some(10 * 1024 * 1024));
        let (client, mut events) = AsyncClient::new(options, 10);
        let received = Arc::new(Mutex::new(Vec::new()));
        let (count, mut subscribed) = watch::channel(0);
        let sender = Arc::clone(&received);
        tokio::spawn(async move {
            loop {
                match events.poll().await {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => {
                        client.try_subscribe("#", QoS::AtLeastOnce).unwrap();
                    }
                    Ok(Event::Incoming(Packet::SubAck(_))) => count.send_modify(|count| *count += 1),
                    Ok(Event::Incoming(Packet::Publish(publish))) => sender.lock().unwrap().push(publish),
                    Ok(_) => {}
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        });
        subscribed.wait_for(|count| *count > 0).await.unwrap();
        Self { received, subscribed }
    }
}

struct Server {
    broker: Mosquitto,
    reader: Reader,
    version: Version,
    _folder: TempDir,
}

#[async_trait]
impl Broker for Server {
    fn port(&self) -> u16 {
        self.broker.port()
    }

    fn sink(&self, connection: &Connection) -> Result<Arc<dyn Sink>> {
        let password = connection.password.as_deref().unwrap_or(PASSWORD);
        let config = MqttConfig {
            version: self.version,
            format: Some(connection.format),
            user: Some("app".to_owned()),
            password: Some(password.into()),
            // With 3.1.1 a broker cannot report its limit.
            max_packet_bytes: (self.version == Version::V311).then_some(LIMIT),
            ack_timeout: Duration::from_secs(3),
            ..MqttConfig::new(&format!("mqtt://127.0.0.1:{}", connection.port))?
        };
        Ok(Arc::new(MqttSink::new(config)?))
    }

    async fn received(&mut self) -> Vec<Received> {
        let received = self.reader.received.lock().unwrap();
        let read = |publish: &Publish| {
            let properties = publish.properties.clone().unwrap_or_default();
            Received {
                content_type: properties.content_type,
                headers: properties.user_properties,
                body: publish.payload.clone(),
            }
        };
        received.iter().map(read).collect()
    }

    async fn kill(&mut self) {
        self.broker.kill();
    }

    async fn restart(&mut self) {
        let before = *self.reader.subscribed.borrow();
        self.broker.restart().await;
        self.reader.subscribed.wait_for(|count| *count > before).await.unwrap();
    }
}

// QoS 2 has separate tests: a broker delivers such a message only after the answer to its first confirmation, and the
// suite expects it before.
fn main() -> std::process::ExitCode {
    run([("v5", Harness(Version::V5)), ("v311", Harness(Version::V311))])
}
