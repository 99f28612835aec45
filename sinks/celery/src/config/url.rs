//! Parses Celery's `broker_url` with kombu's parameters.

use std::time::Duration;

use sendoff::Result;
use sendoff_wire::{Address, TlsConfig};

use crate::error::invalid;

/// A parsed `broker_url`.
#[derive(Debug)]
pub(super) struct BrokerUrl {
    /// The URL without parameters, with the scheme of the broker.
    pub(super) address: Address,
    /// The values of the parameters `ssl_…`.
    pub(super) tls: Option<TlsConfig>,
    pub(super) heartbeat: Option<Duration>,
    pub(super) external_auth: bool,
}

impl BrokerUrl {
    pub(super) fn read(written: &Address) -> Result<Self> {
        let mut url = written.reveal().clone();
        let parts = [url.host_str(), Some(url.path()), url.query()];
        if parts.into_iter().flatten().any(|part| part.contains(';')) {
            return Err(invalid(
                "`url` of the Celery sink has several brokers",
                "the relay does not support Celery's broker failover",
                "use one URL, for example with a host name that always points to the active broker",
            ));
        }
        written.with_scheme(&["amqp", "amqps", "pyamqp", "redis", "rediss"])?;
        if url.scheme() == "pyamqp" {
            // This cannot fail for schemes like these.
            let _ = url.set_scheme("amqp");
        }
        let parameters: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        url.set_query(None);
        let mut read = Self {
            address: Address::parse(url.as_str())?,
            tls: None,
            heartbeat: None,
            external_auth: false,
        };
        for (name, value) in &parameters {
            read.set(name, value)?;
        }
        Ok(read)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let on_rabbitmq = self.address.reveal().scheme().starts_with("amqp");
        match name {
            "ssl_cert_reqs" => match value {
                "required" | "CERT_REQUIRED" => {
                    self.tls.get_or_insert_default();
                }
                _ => {
                    return Err(refused(
                        name,
                        VERIFIED,
                        "set ssl_ca_certs to the broker's CA, and use required",
                    ));
                }
            },
            "ssl_check_hostname" if value.eq_ignore_ascii_case("false") => {
                return Err(refused(
                    name,
                    VERIFIED,
                    "use a broker certificate for its host name, and remove the parameter",
                ));
            }
            "ssl_check_hostname" => {}
            "ssl_ca_certs" => self.tls.get_or_insert_default().ca_file = Some(value.into()),
            "ssl_certfile" => self.tls.get_or_insert_default().cert_file = Some(value.into()),
            "ssl_keyfile" => self.tls.get_or_insert_default().key_file = Some(value.into()),
            "heartbeat" if on_rabbitmq => self.heartbeat = heartbeat(value)?,
            "login_method" if on_rabbitmq && value == "EXTERNAL" => self.external_auth = true,
            "login_method" if on_rabbitmq && matches!(value, "PLAIN" | "AMQPLAIN") => {}
            "connect_timeout" | "connection_timeout" => {
                return Err(refused(
                    name,
                    "the sink has its own setting",
                    "set `connect_timeout` of the sink instead",
                ));
            }
            "virtual_host" => {
                return Err(refused(
                    name,
                    "the virtual host belongs in the path",
                    "write the virtual host after the host, for example …/shop or …/0",
                ));
            }
            _ => {
                return Err(refused(
                    name,
                    "the relay does not support this parameter",
                    "remove it from `url` of the sink, and use the settings of the sink instead",
                ));
            }
        }
        Ok(())
    }
}

const VERIFIED: &str = "the relay always verifies the broker's certificate";

/// As in kombu, 0 means none; then the sink's default applies.
fn heartbeat(value: &str) -> Result<Option<Duration>> {
    let seconds = value.parse::<f64>().ok();
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds {
        Some(Duration::ZERO) => Ok(None),
        Some(heartbeat) => Ok(Some(heartbeat)),
        None => Err(refused(
            "heartbeat",
            "it is not a number of seconds",
            "use a value like heartbeat=10",
        )),
    }
}

fn refused(name: &str, why: &str, next: &str) -> sendoff::Error {
    invalid(
        format!("the parameter {name} in `url` of the Celery sink is not supported"),
        why,
        next,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<BrokerUrl> {
        BrokerUrl::read(&Address::parse(url)?)
    }

    #[test]
    fn urls_are_taken_as_celery_has_them() {
        for (url, address) in [
            ("pyamqp://me:secret@a:5672//", "amqp://me:***@a:5672//"),
            ("amqps://a/shop?ssl_cert_reqs=CERT_REQUIRED", "amqps://a/shop"),
            (
                "rediss://:secret@a:6380/1?ssl_cert_reqs=required",
                "rediss://:***@a:6380/1",
            ),
            ("amqp://a?heartbeat=30&login_method=PLAIN", "amqp://a"),
            ("redis://a/3", "redis://a/3"),
        ] {
            assert_eq!(read(url).unwrap().address.to_string(), address, "{url}");
        }
        let url = "rediss://a?ssl_ca_certs=/etc/ca.pem&ssl_certfile=/c.pem&ssl_keyfile=/k.pem&ssl_check_hostname=true";
        let tls = read(url).unwrap().tls.unwrap();
        assert_eq!(tls.ca_file, Some("/etc/ca.pem".into()));
        assert_eq!(
            (tls.cert_file, tls.key_file),
            (Some("/c.pem".into()), Some("/k.pem".into()))
        );
        let rabbitmq = read("amqps://a?heartbeat=30&login_method=EXTERNAL").unwrap();
        assert_eq!(rabbitmq.heartbeat, Some(Duration::from_secs(30)));
        assert!(rabbitmq.external_auth);
        assert_eq!(read("amqp://a?heartbeat=0").unwrap().heartbeat, None);
    }

    #[test]
    fn what_cannot_be_taken_is_refused_by_its_name() {
        for (url, word) in [
            ("sqs://a", "pyamqp://"),
            ("amqp://a//;amqp://b//", "several"),
            ("redis://a;redis://b", "several"),
            ("rediss://a?ssl_cert_reqs=none", "ssl_cert_reqs"),
            ("rediss://a?ssl_cert_reqs=CERT_OPTIONAL", "ssl_cert_reqs"),
            ("rediss://a?ssl_check_hostname=False", "ssl_check_hostname"),
            ("redis://a?virtual_host=1", "virtual_host"),
            ("redis://a?heartbeat=1", "heartbeat"),
            ("amqp://a?heartbeat=often", "heartbeat"),
            ("amqp://a?login_method=GSSAPI", "login_method"),
            ("amqp://a?connect_timeout=3", "connect_timeout"),
            ("redis://a?socket_timeout=3", "socket_timeout"),
        ] {
            let error = read(url).unwrap_err();
            assert_eq!(error.kind(), sendoff::ErrorKind::Invalid);
            assert!(error.to_string().contains(word), "{url}: {error}");
        }
        let secret = read("redis://me:hunter2@a?token=hunter2").unwrap_err().to_string();
        assert!(!secret.contains("hunter2"), "{secret}");
    }
}
