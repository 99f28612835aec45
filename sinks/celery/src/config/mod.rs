//! The settings of the sink: the broker, the format of messages, and the routes. Routes and format are Celery's own
//! settings, without the prefix `task_`.

mod broker;
mod queue;
mod redis;
mod route;
mod url;

use std::time::Duration;

use sendoff::Result;
use sendoff_wire::{Address, Secret, TlsConfig, duration};
use serde::{Deserialize, Serialize};

pub(crate) use broker::Broker;
pub use queue::{Argument, Declare, ExchangeType, QueueConfig, QueueType};
pub use redis::RedisConfig;
pub use route::RouteConfig;

/// The broker, the format of messages, and the routes. They must have the same values as in the application's Celery
/// settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CeleryConfig {
    /// Celery's `broker_url`: `amqp://user@host:5672/vhost`, `redis://user@host:6379/0`, or with TLS `amqps://` and
    /// `rediss://`, with kombu's parameters. A sink needs it; an encoder does not.
    pub url: Option<Address>,
    /// The user's password; better here than in the URL.
    pub password: Option<Secret>,
    /// TLS settings.
    pub tls: Option<TlsConfig>,
    /// How long connecting may take, all attempts together.
    #[serde(with = "duration")]
    pub connect_timeout: Duration,
    /// How long the broker may take to confirm a batch.
    #[serde(with = "duration")]
    pub confirm_timeout: Duration,
    /// The largest body in bytes; the brokers' defaults unless set: 16 MiB on RabbitMQ, 512 MiB on Redis.
    pub max_message_bytes: Option<usize>,
    /// `task_default_queue`.
    pub default_queue: String,
    /// `task_default_exchange`; the name of the default queue unless set.
    pub default_exchange: Option<String>,
    /// `task_default_exchange_type`.
    pub default_exchange_type: ExchangeType,
    /// `task_default_routing_key`; the name of the default queue unless set.
    pub default_routing_key: Option<String>,
    /// `task_default_queue_type`.
    pub default_queue_type: QueueType,
    /// `task_default_priority`.
    pub default_priority: Option<u8>,
    /// Whether RabbitMQ writes messages to disk: `task_default_delivery_mode`.
    pub persistent: bool,
    /// `task_queues`.
    pub queues: Vec<QueueConfig>,
    /// `task_create_missing_queues`: whether a queue that is not in `queues` may be used.
    pub create_missing_queues: bool,
    /// `task_create_missing_queue_type`.
    pub create_missing_queue_type: QueueType,
    /// `task_create_missing_queue_exchange_type`.
    pub create_missing_queue_exchange_type: Option<ExchangeType>,
    /// `task_queue_max_priority`.
    pub queue_max_priority: Option<u8>,
    /// `task_routes`.
    pub routes: Vec<RouteConfig>,
    /// `task_serializer`: json or yaml.
    pub serializer: String,
    /// `task_compression`.
    pub compression: Option<String>,
    /// `task_repr_maxlevels`: how deep the arguments are shown in workers' logs.
    pub repr_maxlevels: usize,
    /// `timezone`: the time zone of times without an offset.
    pub timezone: String,
    /// The sender of a task, as workers show it; `sendoff<process id>@sendoff` unless set.
    pub origin: Option<String>,
    /// Whether exchanges and queues are declared.
    pub declare: Declare,
    /// A task whose eta is further away than this stays in the outbox until then, instead of waiting in a worker.
    #[serde(with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub hold_eta: Option<Duration>,
    /// The prefix of the exchanges of native delayed delivery.
    pub delayed_delivery_prefix: Option<String>,
    /// Settings for Redis only.
    pub redis: RedisConfig,
}

impl Default for CeleryConfig {
    fn default() -> Self {
        Self {
            url: None,
            password: None,
            tls: None,
            connect_timeout: Duration::from_secs(4),
            confirm_timeout: Duration::from_secs(20),
            max_message_bytes: None,
            default_queue: "celery".to_owned(),
            default_exchange: None,
            default_exchange_type: ExchangeType::Direct,
            default_routing_key: None,
            default_queue_type: QueueType::Classic,
            default_priority: None,
            persistent: true,
            queues: Vec::new(),
            create_missing_queues: true,
            create_missing_queue_type: QueueType::Classic,
            create_missing_queue_exchange_type: None,
            queue_max_priority: None,
            routes: Vec::new(),
            serializer: "json".to_owned(),
            compression: None,
            repr_maxlevels: 3,
            timezone: "UTC".to_owned(),
            origin: None,
            declare: Declare::Passive,
            hold_eta: None,
            delayed_delivery_prefix: None,
            redis: RedisConfig::default(),
        }
    }
}

impl CeleryConfig {
    /// The settings for this `broker_url`, all others with their defaults.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for an invalid URL.
    pub fn new(broker_url: &str) -> Result<Self> {
        Ok(Self {
            url: Some(Address::parse(broker_url)?),
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_toml() {
        let config: CeleryConfig = toml::from_str(
            r#"
            default_queue = "shop"
            default_queue_type = "quorum"
            default_exchange_type = "topic"
            declare = "active"
            [[queues]]
            name = "emails"
            routing_key = "mail.#"
            arguments = { x-single-active-consumer = true, x-max-length = 10, x-overflow = "reject-publish" }
            [[routes]]
            task = "shop.mail.*"
            queue = "emails"
            priority = 3
            [redis]
            global_keyprefix = "shop:"
            priority_steps = [0, 5]
            "#,
        )
        .unwrap();
        assert_eq!(config.default_queue_type, QueueType::Quorum);
        assert_eq!(config.routes[0].queue.as_deref(), Some("emails"));
        assert_eq!(config.redis.priority_steps, [0, 5]);
        assert_eq!(config.redis.sep, "\u{6}\u{16}");
        assert_eq!(config.queues[0].arguments.len(), 3);
    }

    #[test]
    fn the_scheme_of_the_url_is_the_kind_of_broker() {
        let read = |text: &str| toml::from_str::<CeleryConfig>(text).unwrap();
        assert!(matches!(
            read("url = 'amqps://a/shop'").broker(),
            Ok(Broker::RabbitMq(_))
        ));
        assert!(matches!(read("url = 'rediss://a/1'").broker(), Ok(Broker::Redis(_))));
        assert!(matches!(read("url = 'pyamqp://a//'").broker(), Ok(Broker::RabbitMq(_))));
        for (text, word) in [
            ("", "url"),
            ("url = 'sqs://a'", "redis://"),
            ("url = 'redis://a/shop'", "number"),
            ("url = 'amqp://a?ssl_ca_certs=ca.pem'", "amqps://"),
            ("url = 'redis://a?ssl_cert_reqs=required'", "rediss://"),
            ("url = 'amqp://a?heartbeat=1d'", "heartbeat"),
            ("url = 'amqp://a?heartbeat=7200'", "heartbeat"),
            ("url = 'amqps://a?login_method=EXTERNAL'", "cert_file"),
            ("url = 'redis://a'\nmax_message_bytes = 0", "max_message_bytes"),
            ("url = 'redis://a'\ntimezone = 'Mars/Base'", "Mars/Base"),
        ] {
            let error = read(text).validate().unwrap_err();
            assert_eq!(error.kind(), sendoff::ErrorKind::Invalid);
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let config: CeleryConfig = toml::from_str("url = 'redis://me:hunter2@a'\npassword = 'hunter2'").unwrap();
        let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_misspelt_setting_is_an_error() {
        for text in [
            "defualt_queue = \"x\"",
            "[redis]\nkeyprefix = \"x\"",
            "[[routes]]\ntask = \"a\"\nqeue = \"b\"",
        ] {
            assert!(toml::from_str::<CeleryConfig>(text).is_err(), "{text}");
        }
    }
}
