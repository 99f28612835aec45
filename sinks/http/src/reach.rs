//! Checks an endpoint without sending a request.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sendoff::{Error, ErrorKind, Result};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::endpoint::origin;
use crate::error::{CHECK_SERVER, unchecked};
use crate::guard::Guard;

/// How long a new connection must stay open.
const MOMENT: Duration = Duration::from_millis(100);

/// Resolves the host, connects, and for `https` checks its certificate.
///
/// # Errors
/// [`ErrorKind::Unreachable`], or [`ErrorKind::Denied`] for an address that is not allowed.
pub(crate) async fn reach(url: &Url, guard: &Guard, tls: Arc<ClientConfig>, limit: Duration) -> Result<()> {
    let what = format!("cannot connect to {}", origin(url));
    match timeout(limit, connect(url, guard, tls)).await {
        Ok(connected) => connected.map_err(|error| unchecked(&what, error)),
        Err(_) => Err(Error::new(ErrorKind::Unreachable, what)
            .because(format!("no answer within {limit:?}"))
            .next_step(CHECK_SERVER)),
    }
}

async fn connect(url: &Url, guard: &Guard, tls: Arc<ClientConfig>) -> std::io::Result<()> {
    guard.check_literal(url).map_err(std::io::Error::other)?;
    let port = url.port_or_known_default().unwrap_or(443);
    let (addresses, name) = match url.host() {
        Some(Host::Domain(name)) => {
            let server = ServerName::try_from(name.to_owned()).map_err(std::io::Error::other)?;
            (guard.look_up(name, port).await?, server)
        }
        Some(Host::Ipv4(address)) => (
            vec![(address, port).into()],
            ServerName::from(std::net::IpAddr::V4(address)),
        ),
        Some(Host::Ipv6(address)) => (
            vec![(address, port).into()],
            ServerName::from(std::net::IpAddr::V6(address)),
        ),
        None => return Err(std::io::ErrorKind::InvalidInput.into()),
    };
    let stream = TcpStream::connect(&addresses[..]).await?;
    if url.scheme() == "https" {
        TlsConnector::from(tls).connect(name, stream).await?;
        return Ok(());
    }
    // A proxy in front of a server that is down may accept connections and close them immediately.
    match timeout(MOMENT, stream.peek(&mut [0])).await {
        Ok(Ok(0)) => Err(std::io::Error::new(
            std::io::ErrorKind::ConnectionAborted,
            "the server closes connections immediately",
        )),
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}
