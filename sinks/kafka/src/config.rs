//! The settings of the sink.

use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Format, Secret, Template, TlsConfig, defaults, duration};
use serde::{Deserialize, Serialize};

use crate::encode;

/// The SASL mechanism: how the sink proves its password to the broker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Mechanism {
    /// `PLAIN`: sends the password itself.
    #[default]
    #[serde(rename = "PLAIN")]
    Plain,
    /// `SCRAM-SHA-256`: sends a proof of the password. Needs the feature `ssl`.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// `SCRAM-SHA-512`: sends a proof of the password. Needs the feature `ssl`.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

/// The compression of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Fast compression with LZ4.
    Lz4,
    /// Fast compression with Snappy.
    Snappy,
    /// Compression with gzip: slower, with smaller results.
    Gzip,
}

/// Settings of the Kafka sink: the cluster, the topic and the login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaConfig {
    /// Some brokers of the cluster, as `host:port`; the client finds the others through them.
    pub brokers: Vec<String>,
    /// The topic of a message; `{topic}` unless set. Kafka allows letters, digits, `.`, `_` and `-`.
    #[serde(default = "defaults::topic")]
    pub topic: Template,
    /// The record's key, which selects the partition. Unless set, it is the message's ordering key, or none if the
    /// message has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Template>,
    /// The format of messages: `raw` unless set.
    #[serde(default)]
    pub format: Format,
    /// The `source` of CloudEvents; `sendoff` unless set.
    #[serde(default = "defaults::source")]
    pub source: String,
    /// The compression of records: `none` unless set.
    #[serde(default)]
    pub compression: Compression,
    /// The largest record in bytes; 1000000 unless set, which is also the default of brokers.
    #[serde(default = "max_message_bytes")]
    pub max_message_bytes: u32,
    /// The user to log in as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// The SASL mechanism: `PLAIN` unless set.
    #[serde(default)]
    pub mechanism: Mechanism,
    /// TLS settings; if this is set, all connections are encrypted. Needs the feature `ssl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// How long to try to connect before the sink counts as down; 3 s unless set.
    #[serde(default = "defaults::connect_timeout", with = "duration")]
    pub connect_timeout: Duration,
    /// How long a message may take, including the client's own attempts to send it again; 5 s unless set.
    #[serde(default = "defaults::ack_timeout", with = "duration")]
    pub ack_timeout: Duration,
}

impl KafkaConfig {
    /// The settings for this cluster; all other settings have their defaults.
    pub fn new(brokers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            brokers: brokers.into_iter().map(Into::into).collect(),
            topic: defaults::topic(),
            key: None,
            format: Format::default(),
            source: defaults::source(),
            compression: Compression::default(),
            max_message_bytes: max_message_bytes(),
            user: None,
            password: None,
            mechanism: Mechanism::default(),
            tls: None,
            connect_timeout: defaults::connect_timeout(),
            ack_timeout: defaults::ack_timeout(),
        }
    }

    /// Checks the settings of the Kafka sink.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the allowed values; [`ErrorKind::Unsupported`] for encryption that was not built
    /// in.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        let is_address = |broker: &String| {
            let host_and_port = broker.rsplit_once(':');
            host_and_port
                .is_some_and(|(host, port)| !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok())
        };
        if self.brokers.is_empty() || !self.brokers.iter().all(is_address) {
            return Err(Error::new(ErrorKind::Invalid, "`brokers` of the Kafka sink is invalid")
                .because("`brokers` must be a list of at least one host:port")
                .next_step("use a list like [\"kafka-1:9092\"]"));
        }
        if self.user.is_some() != self.password.is_some() {
            return invalid(
                "the Kafka sink has only one of user and password",
                "set both, or neither",
            );
        }
        if let Some(fixed) = self.topic.as_fixed()
            && let Err(why) = encode::check_topic(fixed)
        {
            let error = Error::new(ErrorKind::Invalid, "`topic` of the Kafka sink is invalid").because(why);
            return Err(error.next_step("use a topic like orders.placed or {topic}"));
        }
        // librdkafka requires at least 1000, and the value must fit into 32 bits.
        if !(1000..=1_000_000_000).contains(&self.max_message_bytes) {
            return invalid(
                "`max_message_bytes` of the Kafka sink is out of range",
                "use 1000 to 1000000000",
            );
        }
        let too_short = Duration::from_millis(10);
        if self.connect_timeout < too_short || self.ack_timeout < too_short {
            return invalid(
                "`connect_timeout` or `ack_timeout` of the Kafka sink is too short",
                "use 10ms or more",
            );
        }
        self.encrypts_with(cfg!(feature = "ssl"))?;
        if let Some(tls) = &self.tls {
            tls.client()?;
        }
        Ok(())
    }

    fn encrypts_with(&self, openssl: bool) -> Result<()> {
        let needs_it = self.tls.is_some() || self.mechanism != Mechanism::Plain;
        if needs_it && !openssl {
            return Err(
                Error::new(ErrorKind::Unsupported, "tls and SCRAM of the Kafka sink need OpenSSL")
                    .because("this program was built without OpenSSL")
                    .next_step(
                        "build it with --features kafka-ssl (in your own program: with the feature ssl of \
                         sendoff-sink-kafka)",
                    ),
            );
        }
        Ok(())
    }
}

fn max_message_bytes() -> u32 {
    1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> KafkaConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn brokers_are_enough() {
        let config = read("brokers = ['a:9092', '[::1]:9092']");
        assert_eq!(config, KafkaConfig::new(["a:9092", "[::1]:9092"]));
        config.validate().unwrap();
    }

    #[test]
    fn secrets_are_not_shown() {
        let config = read("brokers = ['a:9092']\nuser = 'u'\npassword = 'hunter2'");
        let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        for (lines, word) in [
            ("brokers = []", "kafka-1:9092"),
            ("brokers = ['kafka://a:9092']", "kafka-1:9092"),
            ("brokers = ['a']", "kafka-1:9092"),
            ("brokers = ['a:1']\nuser = 'x'", "both"),
            ("brokers = ['a:1']\ntopic = 'a b'", "letters"),
            ("brokers = ['a:1']\nmax_message_bytes = 1", "out of range"),
            ("brokers = ['a:1']\nack_timeout = '1ms'", "too short"),
        ] {
            let error = read(lines).validate().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{lines}");
            assert!(error.to_string().contains(word), "{lines}: {error}");
        }
    }

    #[test]
    fn encryption_that_was_not_built_in_is_refused_with_advice() {
        for lines in ["[tls]", "mechanism = 'SCRAM-SHA-512'"] {
            let config = read(&format!("brokers = ['a:1']\n{lines}"));
            let error = config.encrypts_with(false).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("--features kafka-ssl"), "{error}");
            config.encrypts_with(true).unwrap();
        }
        read("brokers = ['a:1']").encrypts_with(false).unwrap();
    }
}
