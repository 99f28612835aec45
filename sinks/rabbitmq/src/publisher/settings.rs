//! The address, the login and the limits of a publisher.

use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Address, Secret, TlsConfig};

/// The settings of a [`Publisher`](super::Publisher).
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The URL of the broker: `amqp://user@host:port/vhost`, or `amqps://`. Without a path, or with an empty one, the
    /// virtual host is `/`.
    pub address: Address,
    /// The password of the broker's user, instead of the one in the URL.
    pub password: Option<Secret>,
    /// Whether to log in with the client certificate (SASL EXTERNAL) instead of a password.
    pub external_auth: bool,
    /// TLS settings; only with `amqps://`.
    pub tls: Option<TlsConfig>,
    /// The name of the connections that the broker shows.
    pub connection_name: String,
    /// The interval of AMQP heartbeats. A connection without an answer for twice as long is closed.
    pub heartbeat: Duration,
    /// How long connecting may take, all attempts together, and how long the broker may take to answer a request.
    pub connect_timeout: Duration,
    /// How long the broker may take to confirm a batch.
    pub confirm_timeout: Duration,
    /// The largest number of unconfirmed messages of a batch.
    pub window: usize,
    /// The largest message in bytes. RabbitMQ's own limit is `max_message_size`.
    pub max_message_bytes: usize,
    /// Whether all messages go to one exchange. If so, a missing or refused exchange means that the sink is down.
    /// Otherwise only messages with that exchange fail.
    pub one_exchange: bool,
}

impl Settings {
    /// The settings for this broker; all other settings have their defaults.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            password: None,
            external_auth: false,
            tls: None,
            connection_name: "sendoff".to_owned(),
            heartbeat: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(4),
            confirm_timeout: Duration::from_secs(20),
            window: 1000,
            max_message_bytes: 16 << 20,
            one_exchange: false,
        }
    }

    /// Checks the settings of the publisher.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the allowed values.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next.to_owned()));
        let url = self.address.with_scheme(&["amqp", "amqps"])?.reveal();
        if url.query().is_some() {
            return invalid(
                "the URL of RabbitMQ has query parameters",
                "remove the parameters, and use settings of the sink instead, for example `heartbeat`",
            );
        }
        if self.tls.is_some() && url.scheme() == "amqp" {
            return invalid(
                "tls is set, but the URL of RabbitMQ starts with amqp://",
                "use amqps://, or remove tls",
            );
        }
        if self.external_auth && self.tls.as_ref().is_none_or(|tls| tls.cert_file.is_none()) {
            return invalid(
                "external_auth needs a client certificate",
                "set tls.cert_file and tls.key_file",
            );
        }
        if self.heartbeat < Duration::from_secs(1) || self.heartbeat > Duration::from_secs(3600) {
            return invalid(
                "`heartbeat` of the connection to RabbitMQ is out of range",
                "use 1s to 1h",
            );
        }
        for (name, value) in [
            ("connect_timeout", self.connect_timeout),
            ("confirm_timeout", self.confirm_timeout),
        ] {
            if value.is_zero() {
                return invalid(
                    &format!("{name} of the connection to RabbitMQ is 0"),
                    "use, for example, 5s",
                );
            }
        }
        if self.window == 0 {
            return invalid("`window` of the connection to RabbitMQ is 0", "use, for example, 1000");
        }
        if self.max_message_bytes == 0 {
            return invalid(
                "`max_message_bytes` of the connection to RabbitMQ is 0",
                "use RabbitMQ's max_message_size, for example 16777216",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> Settings {
        Settings::new(Address::parse(url).unwrap())
    }

    #[test]
    fn what_cannot_work_is_refused() {
        assert!(settings("amqp://guest:guest@localhost").validate().is_ok());
        assert!(settings("http://localhost").validate().is_err());
        assert!(settings("amqp://localhost/?heartbeat=3").validate().is_err());
        let with = |change: fn(&mut Settings)| {
            let mut settings = settings("amqp://localhost");
            change(&mut settings);
            settings.validate().unwrap_err().to_string()
        };
        assert!(with(|settings| settings.tls = Some(TlsConfig::default())).contains("amqps://"));
        assert!(with(|settings| settings.external_auth = true).contains("cert_file"));
        assert!(with(|settings| settings.heartbeat = Duration::ZERO).contains("heartbeat"));
        assert!(with(|settings| settings.confirm_timeout = Duration::ZERO).contains("confirm_timeout"));
        assert!(with(|settings| settings.window = 0).contains("window"));
        assert!(with(|settings| settings.max_message_bytes = 0).contains("max_message_size"));
    }
}
