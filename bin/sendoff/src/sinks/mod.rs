//! The sinks of the program: one row per sink, in the order in which people read them.
//!
//! A row is all that the program knows about a sink. Reading and checking its settings, `config show`, `sink ls`,
//! `sink test`, the relay, and the error about an unknown `type` use this table. The tests check that every crate in
//! `sinks/` has a row, and every row a page. docs/writing-a-sink.md shows how to add one.

mod row;

#[cfg(test)]
mod tests;

use std::sync::Arc;

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

pub(crate) use row::{Row, Settings, Support};

#[cfg(not(feature = "kafka"))]
use Support::NotBuilt;
use Support::{Configured, Elsewhere};
use row::Type;

/// All sinks.
pub(crate) static SINKS: &[Row] = &[
    Row {
        name: "stdout",
        page: "docs/sinks/stdout.md",
        support: Configured(&Type {
            validate: |StdoutConfig {}| Ok(()),
            build: |config: &StdoutConfig| Ok(Arc::new(StdoutSink::new(config)?)),
            secrets: &[],
        }),
    },
    Row {
        name: "file",
        page: "docs/sinks/file.md",
        support: Configured(&Type {
            validate: FileConfig::validate,
            build: |config: &FileConfig| Ok(Arc::new(FileSink::new(config.clone())?)),
            secrets: &[],
        }),
    },
    Row {
        name: "http",
        page: "docs/sinks/http.md",
        support: Configured(&Type {
            validate: HttpConfig::validate,
            build: |config: &HttpConfig| Ok(Arc::new(HttpSink::new(config.clone())?)),
            secrets: &["url", "headers", "body", "secrets"],
        }),
    },
    Row {
        name: "redis",
        page: "docs/sinks/redis.md",
        support: Configured(&Type {
            validate: RedisConfig::validate,
            build: |config: &RedisConfig| Ok(Arc::new(RedisSink::new(config.clone())?)),
            secrets: &["url", "password"],
        }),
    },
    Row {
        name: "rabbitmq",
        page: "docs/sinks/rabbitmq.md",
        support: Configured(&Type {
            validate: RabbitMqConfig::validate,
            build: |config: &RabbitMqConfig| Ok(Arc::new(RabbitMqSink::new(config.clone())?)),
            secrets: &["url", "password"],
        }),
    },
    Row {
        name: "celery",
        page: "docs/celery.md",
        support: Configured(&Type {
            validate: CeleryConfig::validate,
            build: |config: &CeleryConfig| Ok(Arc::new(CelerySink::new(config)?)),
            secrets: &["url", "password"],
        }),
    },
    Row {
        name: "nats",
        page: "docs/sinks/nats.md",
        support: Configured(&Type {
            validate: NatsConfig::validate,
            build: |config: &NatsConfig| Ok(Arc::new(NatsSink::new(config.clone())?)),
            secrets: &["url", "password", "token", "nkey"],
        }),
    },
    Row {
        name: "mqtt",
        page: "docs/sinks/mqtt.md",
        support: Configured(&Type {
            validate: MqttConfig::validate,
            build: |config: &MqttConfig| Ok(Arc::new(MqttSink::new(config.clone())?)),
            secrets: &["url", "password"],
        }),
    },
    Row {
        name: "kafka",
        page: "docs/sinks/kafka.md",
        #[cfg(feature = "kafka")]
        support: Configured(&Type {
            validate: KafkaConfig::validate,
            build: |config: &KafkaConfig| Ok(Arc::new(KafkaSink::new(config.clone())?)),
            secrets: &["password"],
        }),
        #[cfg(not(feature = "kafka"))]
        support: NotBuilt(
            "this program was built without Kafka (build it with --features kafka, or with --features kafka-ssl for \
             encrypted connections)",
        ),
    },
    Row {
        name: "handlers",
        page: "docs/sinks/handlers.md",
        support: Elsewhere("handlers are Rust functions, which a file cannot contain"),
    },
];
