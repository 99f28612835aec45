//! The settings of the sink.

use std::path::PathBuf;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Format, Secret, Template, TlsConfig, defaults, duration};
use serde::{Deserialize, Serialize};

use crate::Servers;
use crate::subject;

/// The mode of the NATS sink: what counts as delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// JetStream: a message is delivered when a stream has stored it.
    #[default]
    JetStream,
    /// Core NATS: a message is delivered when the server has read it, even without a subscriber.
    Core,
}

/// Settings of the NATS sink: the server, the subject and the login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NatsConfig {
    /// The URL of the server, or a list of the servers of one cluster, with `nats://` or `tls://`.
    pub url: Servers,
    /// The mode, which decides what counts as delivered: `jetstream` unless set.
    #[serde(default)]
    pub mode: Mode,
    /// The subject of a message; `{topic}` unless set. In fields, white space, control characters, `*`, `>`, `$` and
    /// `%` are percent-encoded, and so is `.` except in the topic, whose dots separate tokens.
    #[serde(default = "defaults::topic")]
    pub subject: Template,
    /// The format of messages: `raw` unless set.
    #[serde(default)]
    pub format: Format,
    /// The `source` of CloudEvents; `sendoff` unless set.
    #[serde(default = "defaults::source")]
    pub source: String,
    /// The stream that must store all messages. Unless set: any stream that covers the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The JetStream domain of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The prefix of JetStream's API, if it is neither `$JS.API` nor that of a domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_prefix: Option<String>,
    /// The user to log in as, if not in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password of the user, if not in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// A token to log in with, instead of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// The seed of an NKey (`SU…`) to log in with, instead of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nkey: Option<Secret>,
    /// A credentials file with a JWT and its seed, instead of a user. The sink reads the file at every connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creds_file: Option<PathBuf>,
    /// TLS settings. If this is set, or the URL is `tls://`, nothing is sent unencrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// Whether TLS starts before the server's greeting, for servers with `handshake_first`.
    #[serde(default)]
    pub tls_first: bool,
    /// The prefix of subjects for acknowledgements, for accounts that may not subscribe to `_INBOX.>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_prefix: Option<String>,
    /// How long to try to connect before the sink counts as down; 3 s unless set.
    #[serde(default = "defaults::connect_timeout", with = "duration")]
    pub connect_timeout: Duration,
    /// How long a batch waits for its acknowledgements; 5 s unless set.
    #[serde(default = "defaults::ack_timeout", with = "duration")]
    pub ack_timeout: Duration,
    /// The largest number of unacknowledged messages of a batch; 1000 unless set.
    #[serde(default = "in_flight")]
    pub max_in_flight: usize,
}

impl NatsConfig {
    /// The settings for this server; all other settings have their defaults.
    ///
    /// # Errors
    /// When the URL cannot be parsed.
    pub fn new(url: &str) -> Result<Self> {
        Ok(Self {
            url: Servers::one(url)?,
            mode: Mode::default(),
            subject: defaults::topic(),
            format: Format::default(),
            source: defaults::source(),
            stream: None,
            domain: None,
            api_prefix: None,
            user: None,
            password: None,
            token: None,
            nkey: None,
            creds_file: None,
            tls: None,
            tls_first: false,
            inbox_prefix: None,
            connect_timeout: defaults::connect_timeout(),
            ack_timeout: defaults::ack_timeout(),
            max_in_flight: in_flight(),
        })
    }

    /// Checks the settings of the NATS sink.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the allowed values.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        for server in self.url.iter() {
            server.with_scheme(&["nats", "tls"])?;
        }
        let ways = [
            self.user.is_some() || self.password.is_some(),
            self.token.is_some(),
            self.nkey.is_some(),
            self.creds_file.is_some(),
        ];
        if ways.iter().filter(|given| **given).count() > 1 {
            return invalid(
                "the NATS sink has several ways to log in",
                "set only one of: user and password, token, nkey, creds_file",
            );
        }
        if self.password.is_some() != self.user.is_some() {
            return invalid(
                "the NATS sink has only one of user and password",
                "set both, or neither",
            );
        }
        if self.domain.is_some() && self.api_prefix.is_some() {
            return invalid("the NATS sink has both domain and api_prefix", "set only one of them");
        }
        if self.mode == Mode::Core && (self.stream.is_some() || self.domain.is_some() || self.api_prefix.is_some()) {
            return invalid(
                "`stream`, `domain` and `api_prefix` of the NATS sink need JetStream, but its mode is core",
                "remove these settings, or set mode = \"jetstream\"",
            );
        }
        let names = [
            ("subject", self.subject.as_fixed()),
            ("stream", self.stream.as_deref()),
            ("domain", self.domain.as_deref()),
            ("api_prefix", self.api_prefix.as_deref()),
            ("inbox_prefix", self.inbox_prefix.as_deref()),
        ];
        for (setting, name) in names {
            if let Some(Err(why)) = name.map(subject::check) {
                let what = format!("`{setting}` of the NATS sink is invalid");
                let error = Error::new(ErrorKind::Invalid, what).because(why);
                return Err(error.next_step("use tokens separated by dots, for example orders.placed"));
            }
        }
        if self.connect_timeout.is_zero() || self.ack_timeout.is_zero() || self.max_in_flight == 0 {
            return invalid(
                "`connect_timeout`, `ack_timeout` or `max_in_flight` of the NATS sink is 0",
                "use a larger value, or remove the setting for the default",
            );
        }
        if let Some(tls) = &self.tls {
            tls.client()?;
        }
        Ok(())
    }
}

fn in_flight() -> usize {
    1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> NatsConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_url_is_enough() {
        let config = read("url = 'nats://localhost:4222'");
        assert_eq!(config, NatsConfig::new("nats://localhost:4222").unwrap());
        config.validate().unwrap();
    }

    #[test]
    fn several_servers_are_a_list() {
        let config = read("url = ['nats://a:4222', 'tls://b:4222']");
        assert_eq!(config.url.len(), 2);
        config.validate().unwrap();
        let error = toml::from_str::<NatsConfig>("url = []").unwrap_err().to_string();
        assert!(error.contains("empty"), "{error}");
    }

    #[test]
    fn secrets_are_not_shown() {
        let config = read("url = 'nats://me:hunter2@a'\nuser = 'u'\npassword = 'hunter2'");
        let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        for (lines, word) in [
            ("url = 'http://a'", "nats:// or tls://"),
            ("url = 'nats://a'\ntoken = 'x'\nnkey = 'y'", "one of"),
            ("url = 'nats://a'\nuser = 'x'", "both"),
            ("url = 'nats://a'\ndomain = 'x'\napi_prefix = 'y'", "one of them"),
            ("url = 'nats://a'\nmode = 'core'\nstream = 'x'", "jetstream"),
            ("url = 'nats://a'\nsubject = 'a.*'", "wildcard"),
            ("url = 'nats://a'\nsubject = 'a..b'", "empty token"),
            ("url = 'nats://a'\nack_timeout = '0s'", "ack_timeout"),
            ("url = 'nats://a'\n[tls]\nca_file = '/nowhere.pem'", "/nowhere.pem"),
        ] {
            let error = read(lines).validate().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{lines}");
            assert!(error.to_string().contains(word), "{lines}: {error}");
        }
        let error = toml::from_str::<NatsConfig>("url = 'nats://a'\nsubjct = 'x'").unwrap_err();
        assert!(error.to_string().contains("subjct"), "{error}");
    }
}
