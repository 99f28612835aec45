//! The settings of the sink.

use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Address, Format, Secret, Template, TlsConfig, defaults, duration};
use serde::{Deserialize, Serialize};

/// The mode of the Redis sink: how a message is stored in Redis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// A message is an entry of a stream.
    #[default]
    Stream,
    /// A message is an element of a list.
    List,
    /// A message is published on a channel, for its current subscribers only.
    PubSub,
}

/// The end of a list at which elements are added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum End {
    /// `LPUSH`, for consumers that take from the right (`BRPOP`).
    Left,
    /// `RPUSH`, for consumers that take from the left (`BLPOP`).
    #[default]
    Right,
}

/// What happens to a message on a channel without subscribers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NoReceivers {
    /// The message counts as delivered, because Redis has accepted it.
    #[default]
    Delivered,
    /// The message is retried later.
    Retry,
}

/// Settings of the Redis sink: server, mode, key and format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// The URL of the server: `redis://user@host:6379/0`, or `rediss://` with TLS. In a cluster, any of its nodes.
    pub url: Address,
    /// The password of the Redis user, if not in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// The mode, which decides how a message is stored: `stream` unless set.
    #[serde(default)]
    pub mode: Mode,
    /// The name of the stream, the list or the channel; `{topic}` unless set.
    #[serde(default = "defaults::topic")]
    pub key: Template,
    /// The format of messages: `raw` for streams, `envelope` for lists and channels unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The `source` of CloudEvents; `sendoff` unless set.
    #[serde(default = "defaults::source")]
    pub source: String,
    /// For streams: the approximate number of entries to keep; all unless set. Older entries are removed even if nobody
    /// has read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_len: Option<u64>,
    /// For streams: whether to keep exactly `max_len` entries, which costs Redis more; `false` unless set.
    #[serde(default)]
    pub exact: bool,
    /// For lists: the end at which elements are added; `right` unless set.
    #[serde(default)]
    pub push: End,
    /// For channels: what happens to a message without subscribers; `delivered` unless set.
    #[serde(default)]
    pub no_receivers: NoReceivers,
    /// The largest body, in bytes. Messages with a larger body are not sent and become dead letters; 512 MiB unless
    /// set, which is Redis' own limit (`proto-max-bulk-len`). Redis would close the connection on a larger one.
    #[serde(default = "max_message_bytes")]
    pub max_message_bytes: usize,
    /// Whether the server is a node of a Redis Cluster; `false` unless set.
    #[serde(default)]
    pub cluster: bool,
    /// TLS settings. They need a `rediss://` URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// How long to try to connect before the sink counts as down; 3 s unless set.
    #[serde(default = "defaults::connect_timeout", with = "duration")]
    pub connect_timeout: Duration,
    /// How long a batch waits for its answers; 10 s unless set.
    #[serde(default = "answer_timeout", with = "duration")]
    pub answer_timeout: Duration,
}

impl RedisConfig {
    /// The settings for this server; all other settings have their defaults.
    ///
    /// # Errors
    /// When the URL cannot be parsed.
    pub fn new(url: &str) -> Result<Self> {
        Ok(Self {
            url: Address::parse(url)?,
            password: None,
            mode: Mode::default(),
            key: defaults::topic(),
            format: None,
            source: defaults::source(),
            max_len: None,
            exact: false,
            push: End::default(),
            no_receivers: NoReceivers::default(),
            max_message_bytes: max_message_bytes(),
            cluster: false,
            tls: None,
            connect_timeout: defaults::connect_timeout(),
            answer_timeout: answer_timeout(),
        })
    }

    /// The format of messages.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(match self.mode {
            Mode::Stream => Format::Raw,
            Mode::List | Mode::PubSub => Format::Envelope,
        })
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.url.reveal().scheme() == "rediss"
    }

    /// Checks the settings of the Redis sink.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the allowed values.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next));
        self.url.with_scheme(&["redis", "rediss"])?;
        let database = self.url.reveal().path().trim_matches('/');
        if !database.is_empty() && database.parse::<u32>().is_err() {
            return invalid(
                "the path in url of the Redis sink is not the number of a database",
                "use a URL like redis://host:6379/0",
            );
        }
        if self.cluster && !matches!(database, "" | "0") {
            return invalid(
                "`url` of the Redis sink has a database number, and a Redis Cluster has only database 0",
                "remove the number from url",
            );
        }
        // Only streams have fields in addition to the body, and every copy must carry the message's id.
        let bare = matches!(self.format(), Format::Raw | Format::CloudEventsBinary);
        if self.mode != Mode::Stream && bare {
            return invalid(
                "with this format of the Redis sink, a list or a channel cannot carry the message's id",
                "use format = \"envelope\" or \"cloudevents\", or mode = \"stream\"",
            );
        }
        if self.mode != Mode::Stream && (self.max_len.is_some() || self.exact) {
            return invalid(
                "`max_len` and `exact` of the Redis sink are for streams",
                "remove these settings, or set mode = \"stream\"",
            );
        }
        if self.max_len == Some(0) {
            return invalid(
                "`max_len` of the Redis sink is 0",
                "use a larger value, or remove the setting to keep all entries",
            );
        }
        if self.key.as_fixed() == Some("") {
            return invalid(
                "`key` of the Redis sink is empty",
                "set `key` to the name of the stream, the list or the channel",
            );
        }
        if self.max_message_bytes == 0 || self.connect_timeout.is_zero() || self.answer_timeout.is_zero() {
            return invalid(
                "`max_message_bytes`, `connect_timeout` or `answer_timeout` of the Redis sink is 0",
                "use a larger value, or remove the setting for the default",
            );
        }
        match &self.tls {
            Some(_) if !self.is_encrypted() => invalid(
                "the Redis sink has tls, but its url starts with redis://",
                "use rediss://, or remove tls",
            ),
            Some(tls) => tls.client().map(drop),
            None => Ok(()),
        }
    }
}

fn max_message_bytes() -> usize {
    512 << 20
}

fn answer_timeout() -> Duration {
    Duration::from_secs(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> RedisConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_url_is_enough() {
        let config = read("url = 'redis://localhost'");
        assert_eq!(config, RedisConfig::new("redis://localhost").unwrap());
        config.validate().unwrap();
        assert_eq!(config.format(), Format::Raw);
        assert_eq!(read("url = 'redis://a'\nmode = 'pubsub'").format(), Format::Envelope);
    }

    #[test]
    fn secrets_are_not_shown() {
        let config = read("url = 'redis://me:hunter2@a'\npassword = 'hunter2'");
        let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        for (lines, word) in [
            ("url = 'http://a'", "redis:// or rediss://"),
            ("url = 'redis://a/orders'", "number"),
            ("url = 'redis://a/3'\ncluster = true", "database 0"),
            ("url = 'redis://a'\nmode = 'list'\nformat = 'raw'", "envelope"),
            (
                "url = 'redis://a'\nmode = 'pubsub'\nformat = 'cloudevents-binary'",
                "envelope",
            ),
            ("url = 'redis://a'\nmode = 'list'\nmax_len = 5", "streams"),
            ("url = 'redis://a'\nmax_len = 0", "max_len"),
            ("url = 'redis://a'\nkey = ''", "empty"),
            ("url = 'redis://a'\nanswer_timeout = '0s'", "answer_timeout"),
            ("url = 'redis://a'\n[tls]", "rediss://"),
            ("url = 'rediss://a'\n[tls]\nca_file = '/nowhere.pem'", "/nowhere.pem"),
        ] {
            let error = read(lines).validate().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{lines}");
            assert!(error.to_string().contains(word), "{lines}: {error}");
        }
        let error = toml::from_str::<RedisConfig>("url = 'redis://a'\nkay = 'x'").unwrap_err();
        assert!(error.to_string().contains("kay"), "{error}");
    }
}
