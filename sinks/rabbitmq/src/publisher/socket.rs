//! The socket of a connection, which can be closed from outside.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use futures::io::{AsyncRead, AsyncWrite};
use futures::task::AtomicWaker;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt as _};

/// Closes a connection immediately, in any state. The client closes with a handshake, which a stopped or blocking
/// broker never answers: the thread of such a connection would stay alive, and would later send its queue, when the
/// messages may have been sent again.
#[derive(Debug, Default)]
pub(super) struct Switch {
    off: AtomicBool,
    reader: AtomicWaker,
}

impl Switch {
    pub(super) fn off(&self) {
        self.off.store(true, Ordering::SeqCst);
        self.reader.wake();
    }

    fn is_off(&self) -> bool {
        self.off.load(Ordering::SeqCst)
    }
}

trait Duplex: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}

impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection to a broker, plain or encrypted.
pub(super) struct Socket {
    stream: Compat<Box<dyn Duplex>>,
    switch: Arc<Switch>,
}

impl Socket {
    /// Connects. With TLS the certificate must be for `host`.
    pub(super) async fn connect(
        host: &str,
        port: u16,
        tls: Option<Arc<ClientConfig>>,
        switch: Arc<Switch>,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Duplex> = match tls {
            None => Box::new(stream),
            Some(config) => {
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                Box::new(TlsConnector::from(config).connect(name, stream).await?)
            }
        };
        Ok(Self {
            stream: stream.compat(),
            switch,
        })
    }

    fn check(&self) -> io::Result<()> {
        if self.switch.is_off() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        // Before reading the switch, so that a change in between wakes this task.
        self.switch.reader.register(cx.waker());
        self.check()?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.switch.is_off() {
            return Poll::Ready(Ok(()));
        }
        // If the broker is gone, the socket is closed already.
        let _ = ready!(Pin::new(&mut self.stream).poll_close(cx));
        Poll::Ready(Ok(()))
    }
}
