//! The settings of the sink.

use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Address, Format, Secret, Template, TlsConfig, duration};
use serde::{Deserialize, Serialize};

use crate::topic;

/// Which protocol is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// MQTT 5.
    #[default]
    #[serde(rename = "5")]
    V5,
    /// MQTT 3.1.1: no headers, and no word about why a broker does not take a message.
    #[serde(rename = "3.1.1")]
    V311,
}

/// How a message is confirmed. There is no 0: nobody would confirm anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Qos {
    /// Once or more: one confirmation.
    #[default]
    AtLeastOnce,
    /// Once per connection: two confirmations. A message that is sent again after a failure is another one for the broker.
    ExactlyOnce,
}

/// Which broker, which topic, and who we are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MqttConfig {
    /// The broker: `mqtt://host:1883`, or `mqtts://host:8883` with TLS.
    pub url: Address,
    /// `"5"` unless set, or `"3.1.1"`.
    #[serde(default)]
    pub version: Version,
    /// The topic of a message; `{topic}` unless set. In what the fields contain, `+`, `#`, `$`, `%` and control characters
    /// are percent-encoded, and so is `/` except in the message's topic.
    #[serde(default = "topic_template")]
    pub topic: Template,
    /// 1 unless set, or 2.
    #[serde(default)]
    pub qos: Qos,
    /// Whether the broker keeps the last message of each topic for those who come later; `false` unless set.
    #[serde(default)]
    pub retain: bool,
    /// How messages are written: `raw` unless set, with 3.1.1 `envelope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Allows formats that need headers with 3.1.1, which has none: consumers then cannot see a message's id.
    #[serde(default)]
    pub without_id: bool,
    /// The `source` of CloudEvents; `sendoff` unless set.
    #[serde(default = "source")]
    pub source: String,
    /// For how long the broker keeps a message for those who are away (MQTT 5); not set: for ever.
    #[serde(default, with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub message_expiry: Option<Duration>,
    /// Our name at the broker; a random one unless set. Two relays with one name throw each other out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The user, if not in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The user's password, if not in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Whom to trust, with `mqtts://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// How long to try to connect before the sink counts as down; 3 s unless set.
    #[serde(default = "connect_timeout", with = "duration")]
    pub connect_timeout: Duration,
    /// How long a batch waits for its confirmations; 5 s unless set.
    #[serde(default = "ack_timeout", with = "duration")]
    pub ack_timeout: Duration,
    /// How many messages may be sent and not confirmed: what the broker allows, at most 1000, unless set; 20 with 3.1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u16>,
    /// The largest packet that the broker takes, in bytes. With MQTT 5 it says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_packet_bytes: Option<usize>,
}

impl MqttConfig {
    /// The defaults for a broker.
    ///
    /// # Errors
    /// When the URL cannot be read.
    pub fn new(url: &str) -> Result<Self> {
        Ok(Self {
            url: Address::parse(url)?,
            version: Version::default(),
            topic: topic_template(),
            qos: Qos::default(),
            retain: false,
            format: None,
            without_id: false,
            source: source(),
            message_expiry: None,
            client_id: None,
            user: None,
            password: None,
            tls: None,
            connect_timeout: connect_timeout(),
            ack_timeout: ack_timeout(),
            max_in_flight: None,
            max_packet_bytes: None,
        })
    }

    /// How messages are written.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(match self.version {
            Version::V5 => Format::Raw,
            Version::V311 => Format::Envelope,
        })
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with what is allowed.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        self.url.with_scheme(&["mqtt", "mqtts"])?;
        if self.tls.is_some() && self.url.reveal().scheme() != "mqtts" {
            return invalid(
                "the MQTT sink has TLS settings, but its url starts with mqtt://",
                "use mqtts://",
            );
        }
        let has_password = self.password.is_some() || self.url.reveal().password().is_some();
        if has_password && self.user.is_none() && self.url.reveal().username().is_empty() {
            return invalid("the MQTT sink has a password but no user", "give both, or none");
        }
        let wants_headers = matches!(self.format(), Format::Raw | Format::CloudEventsBinary);
        if self.version == Version::V311 && wants_headers && !self.without_id {
            return invalid(
                "MQTT 3.1.1 has no headers, so that consumers could not see a message's id",
                "use format = \"envelope\" or \"cloudevents\", or version = \"5\"; without_id = true if it has to be so",
            );
        }
        if self.version == Version::V311 && self.message_expiry.is_some() {
            return invalid(
                "message_expiry of the MQTT sink needs MQTT 5",
                "take it out, or use version = \"5\"",
            );
        }
        if let Some(fixed) = self.topic.as_fixed()
            && let Err(why) = topic::check(fixed)
        {
            let error = Error::new(ErrorKind::Invalid, "the topic of the MQTT sink cannot be used").because(why);
            return Err(error.next_step("write it like orders/placed or {topic}"));
        }
        let seconds = self.message_expiry.map(|expiry| expiry.as_secs());
        if seconds.is_some_and(|seconds| seconds == 0 || u32::try_from(seconds).is_err()) {
            return invalid("message_expiry of the MQTT sink is out of range", "use 1s to 49710d");
        }
        let is_zero = self.connect_timeout.is_zero() || self.ack_timeout.is_zero();
        if is_zero || self.max_in_flight == Some(0) || self.max_packet_bytes == Some(0) {
            return invalid(
                "connect_timeout, ack_timeout, max_in_flight or max_packet_bytes of the MQTT sink is 0",
                "use more, or take the line out for the default",
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
            0 => Err("qos 0 confirms nothing: use 1 or 2"),
            _ => Err("qos is 1 or 2"),
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

fn topic_template() -> Template {
    // A template of one field is one.
    "{topic}".parse().unwrap_or_else(|_| unreachable!())
}

fn source() -> String {
    "sendoff".to_owned()
}

fn connect_timeout() -> Duration {
    Duration::from_secs(3)
}

fn ack_timeout() -> Duration {
    Duration::from_secs(5)
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
