//! Where the broker is, and how patient we are with it.

use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_wire::{Address, Secret, TlsConfig};

/// The settings of a [`Publisher`](super::Publisher).
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `amqp://user@host:port/vhost`, or `amqps://`. Without a path, or with an empty one, the virtual host is `/`.
    pub address: Address,
    /// The user's password, instead of the one in the address.
    pub password: Option<Secret>,
    /// Let the broker know us by our certificate (SASL EXTERNAL) instead of a password.
    pub external_auth: bool,
    /// Whom to trust; only with `amqps://`.
    pub tls: Option<TlsConfig>,
    /// What the broker shows as the name of our connections.
    pub connection_name: String,
    /// After how long a silent connection is checked; one that stays silent for twice as long is given up.
    pub heartbeat: Duration,
    /// How long connecting may take, all tries together, and how long the broker may take to answer a question.
    pub connect_timeout: Duration,
    /// How long the broker may take to confirm a batch.
    pub confirm_timeout: Duration,
    /// How many messages of a batch may be on their way at once.
    pub window: usize,
    /// The largest message; RabbitMQ's own limit is `max_message_size`.
    pub max_message_bytes: usize,
    /// All messages go to one exchange: if that is missing or refuses us, the sink is down. Otherwise it is the matter of
    /// the one message that named it.
    pub one_exchange: bool,
}

impl Settings {
    /// The defaults for a broker.
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

    /// Checks the values.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with what is allowed.
    pub fn validate(&self) -> Result<()> {
        let invalid = |what: &str, next: &str| Err(Error::new(ErrorKind::Invalid, what).next_step(next.to_owned()));
        let url = self.address.with_scheme(&["amqp", "amqps"])?.reveal();
        if url.query().is_some() {
            return invalid(
                "the URL of RabbitMQ has parameters",
                "use settings of the sink, such as heartbeat",
            );
        }
        if self.tls.is_some() && url.scheme() == "amqp" {
            return invalid("TLS is set up, but the URL starts with amqp://", "write amqps://");
        }
        if self.external_auth && self.tls.as_ref().is_none_or(|tls| tls.cert_file.is_none()) {
            return invalid(
                "external_auth needs a certificate of our own",
                "set tls.cert_file and tls.key_file",
            );
        }
        if self.heartbeat < Duration::from_secs(1) || self.heartbeat > Duration::from_secs(3600) {
            return invalid("heartbeat is out of range", "use 1s to 1h");
        }
        for (name, value) in [
            ("connect_timeout", self.connect_timeout),
            ("confirm_timeout", self.confirm_timeout),
        ] {
            if value.is_zero() {
                return invalid(&format!("{name} is 0"), "use for example 5s");
            }
        }
        if self.window == 0 {
            return invalid("window is 0, so that nothing could be sent", "use for example 1000");
        }
        if self.max_message_bytes == 0 {
            return invalid(
                "max_message_bytes is 0",
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
