//! Connecting to the broker.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_rs::Runtime;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism};
use lapin::{AsyncTcpStream, Connection, ConnectionProperties};
use rustls::ClientConfig;
use tokio::time::{Instant, sleep, timeout_at};

use super::kit::Kit;
use super::link::Link;
use super::socket::{Socket, Switch};
use super::{Settings, Topology};
use crate::error::Failure;

/// The first pause between two attempts; every further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Opens connections to one broker.
pub(super) struct Connector {
    pub(super) settings: Settings,
    pub(super) topology: Topology,
    tls: Option<Arc<ClientConfig>>,
}

/// Closes a connection after its caller is gone: the client alone would continue to connect.
struct Abandon(Option<Arc<Switch>>);

impl Drop for Abandon {
    fn drop(&mut self) {
        if let Some(switch) = &self.0 {
            switch.off();
        }
    }
}

impl Connector {
    pub(super) fn new(settings: Settings, topology: Topology) -> sendoff::Result<Self> {
        settings.validate()?;
        let tls = match settings.address.reveal().scheme() {
            "amqps" => Some(Arc::new(settings.tls.clone().unwrap_or_default().client()?)),
            _ => None,
        };
        Ok(Self {
            settings,
            topology,
            tls,
        })
    }

    /// A connection that is ready to publish. An unreachable broker is tried again, with growing pauses, until the time
    /// is up; a refused login is not.
    pub(super) async fn link(&self) -> Result<Link, Failure> {
        let deadline = Instant::now() + self.settings.connect_timeout;
        let mut pause = FIRST_PAUSE;
        loop {
            let failure = match timeout_at(deadline, self.try_link()).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(failure)) => failure,
                Err(_) => return Err(self.failure(io::Error::from(io::ErrorKind::TimedOut).into())),
            };
            if !failure.passing || Instant::now() + pause > deadline {
                return Err(failure);
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    async fn try_link(&self) -> Result<Link, Failure> {
        // Read each time: the password may be in a file that has changed.
        let uri = self.uri()?;
        let switch = Arc::new(Switch::default());
        let mut abandon = Abandon(Some(Arc::clone(&switch)));
        let connection = self.connect(uri, &switch).await.map_err(|error| self.failure(error))?;
        let link = Link::open(connection, switch, self).await?;
        abandon.0 = None;
        Ok(link)
    }

    async fn connect(&self, uri: AMQPUri, switch: &Arc<Switch>) -> lapin::Result<Connection> {
        let (tls, switch) = (self.tls.clone(), Arc::clone(switch));
        let limit = self.settings.connect_timeout;
        let open = async move |uri: AMQPUri, _: Runtime<Kit>| {
            silence_this_thread();
            let AMQPAuthority { host, port, .. } = &uri.authority;
            let connecting = Socket::connect(host, *port, tls.clone(), Arc::clone(&switch));
            match tokio::time::timeout(limit, connecting).await {
                Ok(socket) => Ok(AsyncTcpStream::Plain(socket?)),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        };
        let properties = ConnectionProperties::default()
            .with_connection_name(self.settings.connection_name.as_str().into())
            .with_client_property("product".into(), "sendoff".into())
            .with_client_property("version".into(), env!("CARGO_PKG_VERSION").into());
        Connection::connector(uri, Runtime::new(Kit::current()), open, properties).await
    }

    fn failure(&self, error: lapin::Error) -> Failure {
        Failure::connecting(error, &self.settings.address.to_string())
    }

    fn uri(&self) -> Result<AMQPUri, Failure> {
        let settings = &self.settings;
        let url = settings.address.reveal();
        let scheme = if self.tls.is_some() {
            AMQPScheme::AMQPS
        } else {
            AMQPScheme::AMQP
        };
        let port = url.port().unwrap_or(scheme.default_port());
        // A password in the URL is percent-encoded; the setting `password` is used as it is.
        let written: AMQPUri = url.as_str().parse().map_err(|_: String| {
            Failure::from(
                sendoff::Error::new(
                    sendoff::ErrorKind::Invalid,
                    "`url` of the RabbitMQ sink cannot be parsed",
                )
                .next_step("use a URL like amqp://user@host:5672/vhost"),
            )
        })?;
        let AMQPUserInfo { username, password } = written.authority.userinfo;
        let password = match &settings.password {
            Some(secret) => secret.reveal()?,
            None => password,
        };
        let host = url.host_str().unwrap_or("localhost");
        Ok(AMQPUri {
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo { username, password },
                host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
                port,
            },
            // Other clients, too, read an empty name as `/`.
            vhost: if written.vhost.is_empty() {
                "/".to_owned()
            } else {
                written.vhost
            },
            query: AMQPQueryString {
                heartbeat: u16::try_from(settings.heartbeat.as_secs()).ok(),
                auth_mechanism: settings.external_auth.then_some(SASLMechanism::External),
                ..AMQPQueryString::default()
            },
            scheme,
        })
    }
}

/// Disables the client's log on the thread of the connection, which calls this function first. The client would log a
/// returned message as a whole, including its payload. The sink gets the same information as errors.
fn silence_this_thread() {
    let quiet = tracing::dispatcher::set_default(&tracing::Dispatch::none());
    // Until the thread ends.
    std::mem::forget(quiet);
}

#[cfg(test)]
mod tests {
    use sendoff_wire::Address;

    use super::*;

    fn uri(url: &str, password: Option<&str>) -> AMQPUri {
        let mut settings = Settings::new(Address::parse(url).unwrap());
        settings.password = password.map(Into::into);
        Connector::new(settings, Topology::default()).unwrap().uri().unwrap()
    }

    #[test]
    fn an_address_is_read_as_people_mean_it() {
        let read = uri("amqp://me:a%2Fb@[::1]:7/orders%2Feu", None);
        assert_eq!((read.authority.host.as_str(), read.authority.port), ("::1", 7));
        assert_eq!(read.vhost, "orders/eu");
        assert_eq!(read.authority.userinfo.password, "a/b");
        assert_eq!(
            uri("amqp://me@host", Some("a%2Fb")).authority.userinfo.password,
            "a%2Fb"
        );
        for slash in ["amqp://host", "amqp://host/", "amqp://host/%2f"] {
            let read = uri(slash, None);
            assert_eq!((read.vhost.as_str(), read.authority.port), ("/", 5672), "{slash}");
            assert_eq!(read.authority.userinfo.username, "guest");
        }
    }
}
