//! The settings of the sink.

use std::collections::BTreeMap;
use std::time::Duration;

use lapin::ExchangeKind;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Address, Format, Secret, Template, TlsConfig, defaults, duration};
use serde::{Deserialize, Serialize};

use crate::publisher::{Declare, Exchange, Queue, Settings, Topology};

/// Settings of the RabbitMQ sink: the broker, the exchange, and how messages are published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RabbitMqConfig {
    /// The URL of the broker: `amqp://user@host:5672/vhost`, or `amqps://` with TLS.
    pub url: Address,
    /// The password of the broker's user. It is better here than in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Whether to log in with the client certificate (SASL EXTERNAL) instead of a password.
    #[serde(default)]
    pub external_auth: bool,
    /// TLS settings; only with `amqps://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,

    /// The exchange, which is a template. An empty exchange is the default exchange, where the routing key is the name
    /// of a queue.
    pub exchange: Template,
    /// The routing key; a template, `{topic}` unless set.
    #[serde(default = "defaults::topic")]
    pub routing_key: Template,
    /// Headers in addition to those of the message and the format. Each value is a template; empty values are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Template>,
    /// The AMQP property `correlation_id`, which is a template. It is left out if it is empty, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Template>,
    /// The AMQP property `app_id`; `sendoff` unless set.
    #[serde(default = "app_id")]
    pub app_id: String,
    /// The format of messages; `raw` unless set.
    #[serde(default)]
    pub format: Format,
    /// The attribute `source` of CloudEvents; `sendoff` unless set.
    #[serde(default = "app_id")]
    pub source: String,
    /// Whether queues keep messages when the broker restarts; `true` unless set.
    #[serde(default = "yes")]
    pub persistent: bool,
    /// The highest priority of a message on the broker; 9 unless set. Higher priorities are lowered to it, negative
    /// ones are raised to 0.
    #[serde(default = "nine")]
    pub max_priority: u8,

    /// Whether the sink declares exchange and queue: `off` (unless set), `passive` or `active`.
    #[serde(default)]
    pub declare: Declare,
    /// The type of the declared exchange; `topic` unless set.
    #[serde(default)]
    pub exchange_type: ExchangeType,
    /// Whether the declared exchange and queue survive a restart of the broker; `true` unless set.
    #[serde(default = "yes")]
    pub durable: bool,
    /// The name of a queue to declare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The type of the declared queue; `quorum` unless set.
    #[serde(default)]
    pub queue_type: QueueType,
    /// The binding key of the declared queue; `#` unless set.
    #[serde(default = "all")]
    pub binding_key: String,

    /// The interval of AMQP heartbeats; `10s` unless set.
    #[serde(default = "ten_seconds", with = "duration")]
    pub heartbeat: Duration,
    /// How long connecting may take, all attempts together; `4s` unless set.
    #[serde(default = "four_seconds", with = "duration")]
    pub connect_timeout: Duration,
    /// How long the broker may take to confirm a batch; `20s` unless set.
    #[serde(default = "twenty_seconds", with = "duration")]
    pub confirm_timeout: Duration,
    /// The largest number of unconfirmed messages of a batch; 1000 unless set.
    #[serde(default = "thousand")]
    pub window: usize,
    /// The largest message in bytes: RabbitMQ's `max_message_size`; 16 MiB unless set, the default of RabbitMQ 4.
    #[serde(default = "sixteen_mib")]
    pub max_message_bytes: usize,
}

/// The type of an exchange: how it routes messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ExchangeType {
    /// A direct exchange routes to queues whose binding key is the routing key.
    Direct,
    /// A fanout exchange routes to all queues that are bound to it.
    Fanout,
    /// A headers exchange routes by headers.
    Headers,
    /// A topic exchange routes to queues whose binding key matches the words of the routing key.
    #[default]
    Topic,
}

/// The type of a queue: how it keeps messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum QueueType {
    /// A classic queue keeps messages on one node. Needed for priorities.
    Classic,
    /// A quorum queue keeps messages on several nodes.
    #[default]
    Quorum,
}

impl RabbitMqConfig {
    /// The settings for this broker and exchange; all other settings have their defaults.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the URL or the template cannot be parsed.
    pub fn new(url: &str, exchange: &str) -> Result<Self> {
        let Settings {
            heartbeat,
            connect_timeout,
            confirm_timeout,
            window,
            max_message_bytes,
            address,
            ..
        } = Settings::new(Address::parse(url)?);
        Ok(Self {
            url: address,
            password: None,
            external_auth: false,
            tls: None,
            exchange: exchange.parse()?,
            routing_key: defaults::topic(),
            headers: BTreeMap::new(),
            correlation_id: None,
            app_id: app_id(),
            format: Format::default(),
            source: app_id(),
            persistent: yes(),
            max_priority: nine(),
            declare: Declare::default(),
            exchange_type: ExchangeType::default(),
            durable: yes(),
            queue: None,
            queue_type: QueueType::default(),
            binding_key: all(),
            heartbeat,
            connect_timeout,
            confirm_timeout,
            window,
            max_message_bytes,
        })
    }

    /// Checks the settings of the RabbitMQ sink.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the allowed values.
    pub fn validate(&self) -> Result<()> {
        self.settings().validate()?;
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        let names = [
            ("exchange", self.exchange.as_fixed().unwrap_or_default()),
            ("routing_key", self.routing_key.as_fixed().unwrap_or_default()),
            ("app_id", &self.app_id),
            ("queue", self.queue.as_deref().unwrap_or_default()),
            ("binding_key", &self.binding_key),
        ];
        let headers = self.headers.keys().map(|name| ("name of a header", name.as_str()));
        for (what, name) in names.into_iter().chain(headers) {
            if name.len() > 255 {
                return invalid(
                    &format!("{what} of the RabbitMQ sink is too long: {} bytes", name.len()),
                    "use a name of at most 255 bytes, which is AMQP's limit",
                );
            }
        }
        if self.declare != Declare::Off && self.exchange.as_fixed() == Some("") && self.queue.is_none() {
            return invalid(
                "the RabbitMQ sink cannot declare the default exchange",
                "set exchange or queue, or declare = \"off\"",
            );
        }
        if self.queue.is_some() && self.declare == Declare::Off {
            return invalid(
                "the RabbitMQ sink has a queue, but declare is \"off\"",
                "set declare = \"active\" or \"passive\"",
            );
        }
        if self.queue.is_some() && self.exchange.as_fixed().is_none() {
            return invalid(
                "the RabbitMQ sink cannot bind a queue to an exchange that depends on the message",
                "remove queue, and bind queues on the broker",
            );
        }
        if self.queue.is_some() && self.queue_type == QueueType::Quorum && !self.durable {
            return invalid(
                "the RabbitMQ sink has durable = false, but a quorum queue is always durable",
                "set queue_type = \"classic\", or remove durable",
            );
        }
        Ok(())
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            address: self.url.clone(),
            password: self.password.clone(),
            external_auth: self.external_auth,
            tls: self.tls.clone(),
            connection_name: self.app_id.clone(),
            heartbeat: self.heartbeat,
            connect_timeout: self.connect_timeout,
            confirm_timeout: self.confirm_timeout,
            window: self.window,
            max_message_bytes: self.max_message_bytes,
            one_exchange: self.exchange.as_fixed().is_some(),
        }
    }

    /// After [`RabbitMqConfig::validate`], its names are not too long.
    pub(crate) fn topology(&self) -> Topology {
        let exchange: ShortString = self.exchange.as_fixed().unwrap_or_default().into();
        let queue = |name: &String| {
            let mut arguments = FieldTable::default();
            let kind = match self.queue_type {
                QueueType::Classic => "classic",
                QueueType::Quorum => "quorum",
            };
            arguments.insert("x-queue-type".into(), AMQPValue::LongString(kind.into()));
            let binding = (exchange.clone(), self.binding_key.as_str().into());
            Queue {
                name: name.as_str().into(),
                durable: self.durable,
                arguments,
                // Every queue is already bound to the default exchange.
                bindings: if exchange.as_str().is_empty() {
                    vec![]
                } else {
                    vec![binding]
                },
            }
        };
        Topology {
            declare: self.declare,
            exchange: Some(Exchange {
                kind: match self.exchange_type {
                    ExchangeType::Direct => ExchangeKind::Direct,
                    ExchangeType::Fanout => ExchangeKind::Fanout,
                    ExchangeType::Headers => ExchangeKind::Headers,
                    ExchangeType::Topic => ExchangeKind::Topic,
                },
                durable: self.durable,
            }),
            queues: self.queue.iter().map(queue).collect(),
        }
    }
}

#[allow(clippy::expect_used, reason = "a constant that always parses")]
fn app_id() -> String {
    "sendoff".to_owned()
}

fn yes() -> bool {
    true
}

fn nine() -> u8 {
    9
}

fn all() -> String {
    "#".to_owned()
}

fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

fn four_seconds() -> Duration {
    Duration::from_secs(4)
}

fn twenty_seconds() -> Duration {
    Duration::from_secs(20)
}

fn thousand() -> usize {
    1000
}

fn sixteen_mib() -> usize {
    16 << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(more: &str) -> RabbitMqConfig {
        toml::from_str(&format!("url = 'amqp://me:hunter2@host'\nexchange = 'orders'\n{more}")).unwrap()
    }

    #[test]
    fn two_lines_are_a_configuration() {
        let config = read("");
        assert!(config.validate().is_ok());
        assert_eq!(config, RabbitMqConfig::new("amqp://me:hunter2@host", "orders").unwrap());
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        for (more, word) in [
            ("queue = 'q'", "declare"),
            ("queue = 'q'\ndeclare = 'active'\ndurable = false", "classic"),
            ("heartbeat = '10ms'", "heartbeat"),
            ("[tls]\nca_file = 'ca.pem'", "amqps://"),
        ] {
            let error = read(more).validate().unwrap_err().to_string();
            assert!(error.contains(word), "{more}: {error}");
        }
        let long = "x".repeat(256);
        assert!(read(&format!("app_id = '{long}'")).validate().is_err());
        assert!(read(&format!("headers = {{ '{long}' = 'v' }}")).validate().is_err());
        let templated = |exchange: &str, more: &str| {
            let text = format!("url = 'amqp://host'\nexchange = '{exchange}'\n{more}");
            toml::from_str::<RabbitMqConfig>(&text).unwrap().validate()
        };
        assert!(templated("{topic}", "declare = 'active'").is_ok());
        assert!(templated("{topic}", "declare = 'active'\nqueue = 'q'").is_err());
        assert!(templated("", "declare = 'active'").is_err());
        assert!(templated("", "declare = 'active'\nqueue = 'q'").is_ok());
    }
}
