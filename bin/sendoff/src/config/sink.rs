//! `[[sink]]`: where messages go.

use std::sync::Arc;
use std::time::Duration;

use sendoff::{Result, Sink};
use sendoff_relay::SinkSettings;
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_sink_file::{FileConfig, FileSink};
use sendoff_sink_http::{HttpConfig, HttpSink};
#[cfg(feature = "kafka")]
use sendoff_sink_kafka::{KafkaConfig, KafkaSink};
use sendoff_sink_mqtt::{MqttConfig, MqttSink};
use sendoff_sink_nats::{NatsConfig, NatsSink};
use sendoff_sink_rabbitmq::{RabbitMqConfig, RabbitMqSink};
use sendoff_sink_redis::{RedisConfig, RedisSink};
use sendoff_sink_stdout::{StdoutConfig, StdoutSink};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::duration;
use super::unread::Unread;

/// One sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SinkConfig {
    #[serde(flatten)]
    common: Common,
    /// Its type, with the settings of that type.
    #[serde(flatten)]
    pub(crate) kind: SinkKind,
}

/// The types of sinks that a file can configure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum SinkKind {
    /// Lines of JSON on standard output.
    Stdout(StdoutConfig),
    /// Lines of JSON in a file.
    File(FileConfig),
    /// Webhooks.
    Http(Box<HttpConfig>),
    /// Redis streams, lists and channels.
    Redis(Box<RedisConfig>),
    /// Messages of RabbitMQ.
    #[serde(rename = "rabbitmq")]
    RabbitMq(Box<RabbitMqConfig>),
    /// Tasks of Celery.
    Celery(Box<CeleryConfig>),
    /// Messages of NATS.
    Nats(Box<NatsConfig>),
    /// Messages of an MQTT broker.
    Mqtt(Box<MqttConfig>),
    /// Records of Kafka.
    #[cfg(feature = "kafka")]
    Kafka(Box<KafkaConfig>),
}

/// What every sink has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Common {
    name: String,
    #[serde(default = "batch")]
    batch: usize,
    #[serde(default = "concurrency")]
    concurrency: usize,
    #[serde(default = "timeout", with = "duration")]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
}

const COMMON: [&str; 6] = ["name", "type", "batch", "concurrency", "timeout", "rate"];

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Stdout,
    File,
    Http,
    Redis,
    RabbitMq,
    Celery,
    Nats,
    Mqtt,
    Kafka,
}

impl SinkConfig {
    /// Its name, for routes and for people.
    pub(crate) fn name(&self) -> &str {
        &self.common.name
    }

    /// How the relay calls it.
    pub(crate) fn settings(&self) -> SinkSettings {
        SinkSettings {
            batch: self.common.batch,
            concurrency: self.common.concurrency,
            timeout: self.common.timeout,
            rate: self.common.rate,
        }
    }

    /// The sink itself.
    ///
    /// # Errors
    /// What the sink says about its settings.
    pub(crate) fn build(&self) -> Result<Arc<dyn Sink>> {
        Ok(match &self.kind {
            SinkKind::Stdout(config) => Arc::new(StdoutSink::new(config)?),
            SinkKind::File(config) => Arc::new(FileSink::new(config.clone())?),
            SinkKind::Http(config) => Arc::new(HttpSink::new((**config).clone())?),
            SinkKind::Redis(config) => Arc::new(RedisSink::new(config.as_ref().clone())?),
            SinkKind::RabbitMq(config) => Arc::new(RabbitMqSink::new(config.as_ref().clone())?),
            SinkKind::Celery(config) => Arc::new(CelerySink::new(config)?),
            SinkKind::Nats(config) => Arc::new(NatsSink::new(config.as_ref().clone())?),
            SinkKind::Mqtt(config) => Arc::new(MqttSink::new(config.as_ref().clone())?),
            #[cfg(feature = "kafka")]
            SinkKind::Kafka(config) => Arc::new(KafkaSink::new(config.as_ref().clone())?),
        })
    }

    /// Whether the settings of its type can work.
    pub(super) fn validate(&self) -> Result<()> {
        match &self.kind {
            SinkKind::Stdout(StdoutConfig {}) => Ok(()),
            SinkKind::File(config) => config.validate(),
            SinkKind::Http(config) => config.validate(),
            SinkKind::Redis(config) => config.validate(),
            SinkKind::RabbitMq(config) => config.validate(),
            SinkKind::Celery(config) => config.validate(),
            SinkKind::Nats(config) => config.validate(),
            SinkKind::Mqtt(config) => config.validate(),
            #[cfg(feature = "kafka")]
            SinkKind::Kafka(config) => config.validate(),
        }
    }
}

/// Reads all `[[sink]]`s. The settings of a type are read by the sink's own crate, which alone knows them; for that, what
/// all sinks have in common is taken out before.
pub(super) fn read(sinks: Spanned<DeValue<'_>>) -> Result<Vec<SinkConfig>, Unread> {
    let span = sinks.span();
    let DeValue::Array(entries) = sinks.into_inner() else {
        return Err(Unread::list("sink", span));
    };
    let mut read = Vec::with_capacity(entries.len());
    for entry in entries {
        let span = entry.span();
        let DeValue::Table(mut own) = entry.into_inner() else {
            return Err(Unread::list("sink", span));
        };
        let common: DeTable<'_> = COMMON.iter().filter_map(|name| own.remove_entry(*name)).collect();
        let typed: Typed = deserialize(Spanned::new(span.clone(), common.clone()))?;
        let own = Spanned::new(span.clone(), own);
        read.push(SinkConfig {
            common: deserialize(Spanned::new(span, common))?,
            kind: match typed.kind {
                Kind::Stdout => SinkKind::Stdout(deserialize(own)?),
                Kind::File => SinkKind::File(deserialize(own)?),
                Kind::Http => SinkKind::Http(Box::new(deserialize(own)?)),
                Kind::Redis => SinkKind::Redis(deserialize(own)?),
                Kind::RabbitMq => SinkKind::RabbitMq(deserialize(own)?),
                Kind::Celery => SinkKind::Celery(deserialize(own)?),
                Kind::Nats => SinkKind::Nats(deserialize(own)?),
                Kind::Mqtt => SinkKind::Mqtt(deserialize(own)?),
                #[cfg(feature = "kafka")]
                Kind::Kafka => SinkKind::Kafka(deserialize(own)?),
                #[cfg(not(feature = "kafka"))]
                Kind::Kafka => {
                    let message = "this program was built without Kafka (build it with --features kafka, or with \
                                   --features kafka-ssl if it has to encrypt)";
                    return Err(Unread::because(message, own.span()));
                }
            },
        });
    }
    Ok(read)
}

fn deserialize<T: DeserializeOwned>(table: Spanned<DeTable<'_>>) -> Result<T, Unread> {
    let span = table.span();
    T::deserialize(Deserializer::from(table)).map_err(|error| Unread::new(&error, &COMMON).or_at(span))
}

fn batch() -> usize {
    SinkSettings::default().batch
}

fn concurrency() -> usize {
    SinkSettings::default().concurrency
}

fn timeout() -> Duration {
    SinkSettings::default().timeout
}
