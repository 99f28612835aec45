//! The settings of the sink.

use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Address, Format, Secret, Template, TlsConfig, defaults, duration};
use serde::{Deserialize, Serialize};

use crate::topic;

/// The version of the MQTT protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// MQTT 5.
    #[default]
    #[serde(rename = "5")]
    V5,
    /// MQTT 3.1.1: it has no headers, and brokers cannot report why they refuse a message.
    #[serde(rename = "3.1.1")]
    V311,
}

/// How the broker confirms a message. QoS 0 is not supported, because it has no confirmation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
#[non_exhaustive]
pub enum Qos {
    /// QoS 1: one confirmation. A message may arrive more than once.
    #[default]
    AtLeastOnce,
    /// QoS 2: two confirmations. A message arrives once per connection; one that is sent again after a failure is a new
    /// message for the broker.
    ExactlyOnce,
}

/// Settings of the MQTT sink: the broker, the topic and the login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MqttConfig {
    /// The URL of the broker: `mqtt://host:1883`, or `mqtts://host:8883` with TLS.
    pub url: Address,
    /// The version of the MQTT protocol: `"5"` unless set, or `"3.1.1"`.
    #[serde(default)]
    pub version: Version,
    /// The topic of a message; `{topic}` unless set. In fields, `+`, `#`, `$`, `%` and control characters are
    /// percent-encoded, and so is `/` except in the message's topic.
    #[serde(default = "defaults::topic")]
    pub topic: Template,
    /// The quality of service: 1 unless set, or 2.
    #[serde(default)]
    pub qos: Qos,
    /// Whether the broker keeps the last message of each topic for later subscribers; `false` unless set.
    #[serde(default)]
    pub retain: bool,
    /// The format of messages: `raw` unless set; with MQTT 3.1.1 `envelope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Whether formats that need headers are allowed with MQTT 3.1.1, which has no headers. Consumers then do not get a
    /// message's id.
    #[serde(default)]
    pub without_id: bool,
    /// The `source` of CloudEvents; `sendoff` unless set.
    #[serde(default = "defaults::source")]
    pub source: String,
    /// How long the broker keeps a message for disconnected subscribers (MQTT 5); without a limit unless set.
    #[serde(default, with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub message_expiry: Option<Duration>,
    /// The client identifier; random unless set. Two relays with the same identifier disconnect each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The user to log in as, if not in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password of the user, if not in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// TLS settings, for `mqtts://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// How long to try to connect before the sink counts as down; 3 s unless set.
    #[serde(default = "defaults::connect_timeout", with = "duration")]
    pub connect_timeout: Duration,
    /// How long a batch waits for its confirmations; 5 s unless set.
    #[serde(default = "defaults::ack_timeout", with = "duration")]
    pub ack_timeout: Duration,
    /// The largest number of unconfirmed messages. Unless set: the broker's limit, at most 1000; with MQTT 3.1.1, 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u16>,
    /// The largest packet that the broker accepts, in bytes. With MQTT 5 the broker reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_packet_bytes: Option<usize>,
}

impl MqttConfig {
    /// The settings for this broker; all other settings have their defaults.
    ///
    /// # Errors
    /// When the URL cannot be parsed.
    pub fn new(url: &str) -> Result<Self> {
        Ok(Self {
            url: Address::parse(url)?,
            version: Version::default(),
            topic: defaults::topic(),
            qos: Qos::default(),
            retain: false,
            format: None,
            without_id: false,
            source: defaults::source(),
            message_expiry: None,
            client_id: None,
            user: None,
            password: None,
            tls: None,
            connect_timeout: defaults::connect_timeout(),
            ack_timeout: defaults::ack_timeout(),
            max_in_flight: None,
            max_packet_bytes: None,
        })
    }

    /// The format of messages.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(match self.version {
            Version::V5 => Format::Raw,
            Version::V311 => Format::Envelope,
        })
    }

    /// Checks the settings of the MQTT sink.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the allowed values.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        self.url.with_scheme(&["mqtt", "mqtts"])?;
        if self.tls.is_some() && self.url.reveal().scheme() != "mqtts" {
            return invalid(
                "the MQTT sink has tls, but its url starts with mqtt://",
                "use mqtts://, or remove tls",
            );
        }
        let has_password = self.password.is_some() || self.url.reveal().password().is_some();
        if has_password && self.user.is_none() && self.url.reveal().username().is_empty() {
            return invalid("the MQTT sink has a password but no user", "set both, or neither");
        }
        let wants_headers = matches!(self.format(), Format::Raw | Format::CloudEventsBinary);
        if self.version == Version::V311 && wants_headers && !self.without_id {
            return invalid(
                "MQTT 3.1.1 has no headers, so with this format of the MQTT sink consumers would not get a message's \
                 id",
                "use format = \"envelope\" or \"cloudevents\", or version = \"5\"; or accept it with without_id = true",
            );
        }
        if self.version == Version::V311 && self.message_expiry.is_some() {
            return invalid(
                "`message_expiry` of the MQTT sink needs MQTT 5",
                "remove the setting, or use version = \"5\"",
            );
        }
        if let Some(fixed) = self.topic.as_fixed()
            && let Err(why) = topic::check(fixed)
        {
            let error = Error::new(ErrorKind::Invalid, "`topic` of the MQTT sink is invalid").because(why);
            return Err(error.next_step("use a topic like orders/placed or {topic}"));
        }
        let seconds = self.message_expiry.map(|expiry| expiry.as_secs());
        if seconds.is_some_and(|seconds| seconds == 0 || u32::try_from(seconds).is_err()) {
            return invalid("`message_expiry` of the MQTT sink is out of range", "use 1s to 49710d");
        }
        let is_zero = self.connect_timeout.is_zero() || self.ack_timeout.is_zero();
        if is_zero || self.max_in_flight == Some(0) || self.max_packet_bytes == Some(0) {
            return invalid(
                "`connect_timeout`, `ack_timeout`, `max_in_flight` or `max_packet_bytes` of the MQTT sink is 0",
                "use a larger value, or remove the setting for the default",
            );
        }
        if let Some(tls) = &self.tls {
            tls.client()?;
        }
        Ok(())
    }
}

impl TryFrom<u8> for Qos {
    type Error = &'static str;

    fn try_from(level: u8) -> Result<Self, &'static str> {
        match level {
            1 => Ok(Self::AtLeastOnce),
            2 => Ok(Self::ExactlyOnce),
            0 => Err("qos 0 has no confirmation: use 1 or 2"),
            _ => Err("qos must be 1 or 2"),
        }
    }
}

impl From<Qos> for u8 {
    fn from(qos: Qos) -> Self {
        match qos {
            Qos::AtLeastOnce => 1,
            Qos::ExactlyOnce => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> MqttConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_url_is_enough() {
        let config = read("url = 'mqtt://localhost'");
        assert_eq!(config, MqttConfig::new("mqtt://localhost").unwrap());
        assert_eq!(config.format(), Format::Raw);
        config.validate().unwrap();
        let old = read("url = 'mqtt://localhost'\nversion = '3.1.1'");
        assert_eq!(old.format(), Format::Envelope);
        old.validate().unwrap();
    }

    #[test]
    fn secrets_are_not_shown() {
        let config = read("url = 'mqtt://me:hunter2@a'\nuser = 'u'\npassword = 'hunter2'");
        let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        for (lines, word) in [
            ("url = 'http://a'", "mqtt:// or mqtts://"),
            ("url = 'mqtt://a'\npassword = 'x'", "no user"),
            ("url = 'mqtt://a'\nversion = '3.1.1'\nformat = 'raw'", "without_id"),
            ("url = 'mqtt://a'\nversion = '3.1.1'\nmessage_expiry = '1h'", "MQTT 5"),
            ("url = 'mqtt://a'\nmessage_expiry = '10ms'", "out of range"),
            ("url = 'mqtt://a'\ntopic = 'a/#'", "wildcard"),
            ("url = 'mqtt://a'\nmax_in_flight = 0", "max_in_flight"),
            ("url = 'mqtt://a'\n[tls]", "use mqtts://"),
            ("url = 'mqtts://a'\n[tls]\nca_file = '/nowhere.pem'", "/nowhere.pem"),
        ] {
            let error = read(lines).validate().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{lines}");
            assert!(error.to_string().contains(word), "{lines}: {error}");
        }
        let forced = read("url = 'mqtt://a'\nversion = '3.1.1'\nformat = 'raw'\nwithout_id = true");
        forced.validate().unwrap();
        let error = toml::from_str::<MqttConfig>("url = 'mqtt://a'\nqos = 0")
            .unwrap_err()
            .to_string();
        assert!(error.contains("use 1 or 2"), "{error}");
    }
}
