//! The settings of the sink.

use std::path::PathBuf;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Format, Secret, Template, TlsConfig, duration};
use serde::{Deserialize, Serialize};

use crate::Servers;
use crate::subject;

/// What confirms a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A stream stored it.
    #[default]
    JetStream,
    /// The server read it. Nobody has to be there to receive it.
    Core,
}

/// Which server, which subject, and who we are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NatsConfig {
    /// The server, or a list of the servers of one cluster. `nats://` or `tls://`.
    pub url: Servers,
    /// What confirms a message: `jetstream` unless set.
    #[serde(default)]
    pub mode: Mode,
    /// The subject of a message; `{topic}` unless set. In what the fields contain, white space, control characters, `*`,
    /// `>`, `$` and `%` are percent-encoded, and so is `.` except in the topic, whose dots separate the tokens.
    #[serde(default = "topic")]
    pub subject: Template,
    /// How messages are written: `raw` unless set.
    #[serde(default)]
    pub format: Format,
    /// The `source` of CloudEvents; `sendoff` unless set.
    #[serde(default = "source")]
    pub source: String,
    /// The stream that all messages must end in. Not set: whichever covers the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The JetStream domain that is asked about streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The prefix of JetStream's API, when it is neither `$JS.API` nor one of a domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_prefix: Option<String>,
    /// The user, if not in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The user's password, if not in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// A token, instead of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// The seed of an NKey (`SU…`), instead of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nkey: Option<Secret>,
    /// A credentials file with a JWT and its seed, instead of a user. Read again at every connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creds_file: Option<PathBuf>,
    /// Whom to trust. Set, or with a `tls://` URL, nothing is sent without encryption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// Begin with TLS, before the server says anything; for servers with `handshake_first`.
    #[serde(default)]
    pub tls_first: bool,
    /// What acknowledgements are addressed to, for accounts that may not subscribe to `_INBOX.>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_prefix: Option<String>,
    /// How long to try to connect before the sink counts as down; 3 s unless set.
    #[serde(default = "connect_timeout", with = "duration")]
    pub connect_timeout: Duration,
    /// How long a batch waits for its acknowledgements; 5 s unless set.
    #[serde(default = "ack_timeout", with = "duration")]
    pub ack_timeout: Duration,
    /// How many messages of a batch may be sent and not acknowledged; 1000 unless set.
    #[serde(default = "in_flight")]
    pub max_in_flight: usize,
}

impl NatsConfig {
    /// The defaults for a server.
    ///
    /// # Errors
    /// When the URL cannot be read.
    pub fn new(url: &str) -> Result<Self> {
        Ok(Self {
            url: Servers::one(url)?,
            mode: Mode::default(),
            subject: topic(),
            format: Format::default(),
            source: source(),
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
            connect_timeout: connect_timeout(),
            ack_timeout: ack_timeout(),
            max_in_flight: in_flight(),
        })
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with what is allowed.
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
                "give one of: user and password, token, nkey, creds_file",
            );
        }
        if self.password.is_some() != self.user.is_some() {
            return invalid("the NATS sink has only one of user and password", "give both, or none");
        }
        if self.domain.is_some() && self.api_prefix.is_some() {
            return invalid("the NATS sink has a domain and an api_prefix", "give one of them");
        }
        if self.mode == Mode::Core && (self.stream.is_some() || self.domain.is_some() || self.api_prefix.is_some()) {
            return invalid(
                "stream, domain and api_prefix of the NATS sink need JetStream, but its mode is core",
                "take them out, or set mode = \"jetstream\"",
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
                let what = format!("the {setting} of the NATS sink cannot be used");
                let error = Error::new(ErrorKind::Invalid, what).because(why);
                return Err(error.next_step("use tokens with dots in between, such as orders.placed"));
            }
        }
        if self.connect_timeout.is_zero() || self.ack_timeout.is_zero() || self.max_in_flight == 0 {
            return invalid(
                "connect_timeout, ack_timeout or max_in_flight of the NATS sink is 0",
                "use more, or take the line out for the default",
            );
        }
        if let Some(tls) = &self.tls {
            tls.client()?;
        }
        Ok(())
    }
}

fn topic() -> Template {
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
