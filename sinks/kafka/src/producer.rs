//! The librdkafka client and its settings.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::{FromClientConfigAndContext as _, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::producer::{FutureProducer, Producer as _};
use rdkafka::util::Timeout;
use sendoff::{ErrorKind, Result};
use sendoff_wire::{Connect, Refusal};

use crate::health::Health;
use crate::{Compression, KafkaConfig, Mechanism, error};

/// The client's context, shared with the sink.
#[derive(Clone, Default)]
pub(crate) struct Shared(pub(crate) Arc<Health>);

impl rdkafka::ClientContext for Shared {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.0.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.error(error, reason);
    }
}

/// A producer. It connects to all brokers that it needs.
pub(crate) struct Producer {
    /// Taken when it is closed.
    client: Option<FutureProducer<Shared>>,
    pub(crate) health: Arc<Health>,
    /// The brokers of the settings, for errors.
    brokers: String,
}

pub(crate) struct Connector {
    pub(crate) config: Arc<KafkaConfig>,
    /// One record per request.
    pub(crate) single: bool,
}

impl Connect for Connector {
    type Connection = Producer;

    async fn connect(&self) -> Result<Producer, Refusal> {
        let context = Shared::default();
        let health = Arc::clone(&context.0);
        let mut settings = settings(&self.config)?;
        if self.single {
            settings.set("batch.num.messages", "1");
        }
        let client = FutureProducer::from_config_and_context(&settings, context).map_err(|error| Refusal {
            kind: ErrorKind::Invalid,
            ..error::refusal(&self.address(), &error, None)
        })?;
        let producer = Producer {
            client: Some(client),
            health,
            brokers: self.address(),
        };
        producer.sign_of_life(self.config.connect_timeout, None).await?;
        Ok(producer)
    }

    fn address(&self) -> String {
        self.config.brokers.join(",")
    }

    fn is_usable(&self, producer: &Producer) -> bool {
        !producer.health.is_fatal()
    }
}

impl Producer {
    pub(crate) fn client(&self) -> &FutureProducer<Shared> {
        match &self.client {
            Some(client) => client,
            None => unreachable!("a closed producer has no other owner"),
        }
    }

    /// Requests metadata of the cluster, or of one topic. Returns the number of usable topics.
    pub(crate) async fn sign_of_life(&self, patience: Duration, topic: Option<String>) -> Result<usize, Refusal> {
        let client = self.client().clone();
        let asking = tokio::task::spawn_blocking(move || {
            let answer = client
                .client()
                .fetch_metadata(topic.as_deref(), Timeout::After(patience));
            answer.map(|answer| answer.topics().iter().filter(|topic| topic.error().is_none()).count())
        });
        match asking.await {
            Ok(Ok(topics)) => {
                self.health.trust();
                Ok(topics)
            }
            Ok(Err(error)) => Err(error::refusal(&self.brokers, &error, self.health.trouble().as_ref())),
            Err(_) => Err(Refusal {
                kind: ErrorKind::Unreachable,
                what: format!("cannot use Kafka at {}", self.brokers),
                why: "the process is stopping".to_owned(),
                next: "start the relay again".to_owned(),
            }),
        }
    }

    /// Waits for the messages that are sent and not confirmed.
    pub(crate) async fn flush(&self, patience: Duration) {
        let client = self.client().clone();
        let _ = tokio::task::spawn_blocking(move || client.flush(Timeout::After(patience))).await;
    }

    /// Waits for the client to close. If other batches still use it, it closes after the last of them.
    pub(crate) async fn end(self: Arc<Self>) {
        if let Some(client) = Arc::into_inner(self).and_then(|mut last| last.client.take()) {
            let _ = tokio::task::spawn_blocking(move || drop(client)).await;
        }
    }
}

impl Drop for Producer {
    /// Closing the client waits for its threads, so that runs on another thread.
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            std::thread::spawn(move || drop(client));
        }
    }
}

fn settings(config: &KafkaConfig) -> Result<ClientConfig> {
    let mut settings = ClientConfig::new();
    settings.set_log_level(RDKafkaLogLevel::Warning);
    let milliseconds = |duration: Duration| duration.as_millis().to_string();
    for (name, value) in [
        ("bootstrap.servers", config.brokers.join(",")),
        ("client.id", "sendoff".to_owned()),
        ("enable.idempotence", "true".to_owned()),
        ("acks", "all".to_owned()),
        // The same as in Java's client: equal keys go to equal partitions, from any producer.
        ("partitioner", "murmur2_random".to_owned()),
        ("message.timeout.ms", milliseconds(config.ack_timeout)),
        ("request.timeout.ms", milliseconds(config.ack_timeout)),
        (
            "socket.connection.setup.timeout.ms",
            milliseconds(config.connect_timeout.max(Duration::from_secs(1))),
        ),
        // An unknown topic may be about to be created; wait only briefly.
        (
            "topic.metadata.propagation.max.ms",
            milliseconds(config.ack_timeout / 2),
        ),
        ("reconnect.backoff.ms", "50".to_owned()),
        ("reconnect.backoff.max.ms", "1000".to_owned()),
        // A batch arrives in one go; waiting for more would gain nothing.
        ("linger.ms", "1".to_owned()),
        ("message.max.bytes", config.max_message_bytes.to_string()),
        (
            "compression.codec",
            match config.compression {
                Compression::None => "none",
                Compression::Lz4 => "lz4",
                Compression::Snappy => "snappy",
                Compression::Gzip => "gzip",
            }
            .to_owned(),
        ),
        (
            "security.protocol",
            match (config.user.is_some(), config.tls.is_some()) {
                (false, false) => "plaintext",
                (false, true) => "ssl",
                (true, false) => "sasl_plaintext",
                (true, true) => "sasl_ssl",
            }
            .to_owned(),
        ),
    ] {
        settings.set(name, value);
    }
    if let (Some(user), Some(password)) = (&config.user, &config.password) {
        settings
            .set("sasl.username", user)
            .set("sasl.password", password.reveal()?);
        settings.set(
            "sasl.mechanisms",
            match config.mechanism {
                Mechanism::Plain => "PLAIN",
                Mechanism::ScramSha256 => "SCRAM-SHA-256",
                Mechanism::ScramSha512 => "SCRAM-SHA-512",
            },
        );
    }
    if let Some(tls) = &config.tls {
        settings.set("ssl.endpoint.identification.algorithm", "https");
        settings.set("enable.ssl.certificate.verification", "true");
        let files = [
            ("ssl.ca.location", &tls.ca_file),
            ("ssl.certificate.location", &tls.cert_file),
            ("ssl.key.location", &tls.key_file),
        ];
        for (name, file) in files {
            if let Some(file) = file {
                settings.set(name, file.display().to_string());
            }
        }
    }
    Ok(settings)
}
