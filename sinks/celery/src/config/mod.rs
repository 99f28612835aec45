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

/// Settings of the Celery sink: the broker, the format of messages, and the routes. They must have the same values as
/// in the application's Celery settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CeleryConfig {
    /// Celery's `broker_url`: `amqp://user@host:5672/vhost`, `redis://user@host:6379/0`, or with TLS `amqps://` and
    /// `rediss://`, with kombu's parameters. A sink needs it; an encoder does not.
    pub url: Option<Address>,
    /// The password of the broker's user. It is better here than in the URL.
    pub password: Option<Secret>,
    /// TLS settings for the connection to the broker.
    pub tls: Option<TlsConfig>,
    /// How long connecting may take, all attempts together.
    #[serde(with = "duration")]
    pub connect_timeout: Duration,
    /// How long to wait until the broker confirms a batch.
    #[serde(with = "duration")]
    pub confirm_timeout: Duration,
    /// The largest body of a task in bytes. Unless set, the broker's default applies: 16 MiB on RabbitMQ, 512 MiB on
    /// Redis.
    pub max_message_bytes: Option<usize>,
    /// Celery's `task_default_queue`: the queue of tasks without a route.
    pub default_queue: String,
    /// Celery's `task_default_exchange`; the name of the default queue unless set.
    pub default_exchange: Option<String>,
    /// Celery's `task_default_exchange_type`: the type of the default exchange.
    pub default_exchange_type: ExchangeType,
    /// Celery's `task_default_routing_key`; the name of the default queue unless set.
    pub default_routing_key: Option<String>,
    /// Celery's `task_default_queue_type`: the type of the default queue, classic or quorum.
    pub default_queue_type: QueueType,
    /// Celery's `task_default_priority`: the priority of tasks without their own.
    pub default_priority: Option<u8>,
    /// Celery's `task_default_delivery_mode`: whether RabbitMQ writes messages to disk.
    pub persistent: bool,
    /// Celery's `task_queues`: the known queues.
    pub queues: Vec<QueueConfig>,
    /// Celery's `task_create_missing_queues`: whether a task may use a queue that is not in `queues`.
    pub create_missing_queues: bool,
    /// Celery's `task_create_missing_queue_type`: the type of queues that are not in `queues`.
    pub create_missing_queue_type: QueueType,
    /// Celery's `task_create_missing_queue_exchange_type`: the type of the exchange of queues that are not in `queues`.
    pub create_missing_queue_exchange_type: Option<ExchangeType>,
    /// Celery's `task_queue_max_priority`: the highest priority of a queue.
    pub queue_max_priority: Option<u8>,
    /// Celery's `task_routes`: settings for tasks by their names.
    pub routes: Vec<RouteConfig>,
    /// Celery's `task_serializer`: json or yaml.
    pub serializer: String,
    /// Celery's `task_compression`: the compression of bodies.
    pub compression: Option<String>,
    /// Celery's `task_repr_maxlevels`: how deeply nested arguments may be to appear in workers' logs.
    pub repr_maxlevels: usize,
    /// Celery's `timezone`: the time zone of times without an offset.
    pub timezone: String,
    /// The sender of a task that workers show; `sendoff<process id>@sendoff` unless set.
    pub origin: Option<String>,
    /// Whether the sink declares exchanges and queues.
    pub declare: Declare,
    /// Tasks whose eta is further away than this stay in the outbox until then, instead of waiting in a worker.
    #[serde(with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub hold_eta: Option<Duration>,
    /// The prefix of the exchanges for Celery's native delayed delivery.
    pub delayed_delivery_prefix: Option<String>,
    /// Settings that apply only to Redis.
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
    /// The settings for this `broker_url`; all other settings have their defaults.
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
