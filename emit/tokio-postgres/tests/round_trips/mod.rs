//! A socket that counts how often the client waits for the server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The count, shared with the socket.
#[derive(Clone, Default)]
pub(crate) struct RoundTrips(Arc<State>);

#[derive(Default)]
struct State {
    trips: AtomicU64,
    asking: AtomicBool,
}

impl RoundTrips {
    pub(crate) fn count(socket: TcpStream) -> (CountingSocket, Self) {
        let trips = Self::default();
        (CountingSocket(socket, trips.clone()), trips)
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.trips.load(Ordering::SeqCst)
    }
}

/// A round trip starts with the first write after a read.
pub(crate) struct CountingSocket(TcpStream, RoundTrips);

impl CountingSocket {
    fn wrote(&self) {
        let State { trips, asking } = &*self.1.0;
        if !asking.swap(true, Ordering::SeqCst) {
            trips.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl AsyncRead for CountingSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.0).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.1.0.asking.store(false, Ordering::SeqCst);
        }
        read
    }
}

impl AsyncWrite for CountingSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write(cx, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.wrote();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
