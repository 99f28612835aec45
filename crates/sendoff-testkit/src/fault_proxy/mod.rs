//! A wire that can be cut: a TCP proxy between a client and its server.

#![allow(clippy::expect_used, reason = "a test without its proxy fails")]

mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use wire::{Direction, Wire};

/// What the proxy does with the bytes of all its connections, until it is told otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: bytes pass.
    Pass,
    /// Answers of the server wait here and pass later; requests still arrive.
    HoldAnswers,
    /// Answers of the server vanish; requests still arrive. A connection that has lost something does not recover: it is
    /// cut when the fault ends.
    LoseAnswers,
    /// Everything arrives later by so much.
    Delay(Duration),
    /// Every connection is closed, and new ones as soon as they are made.
    Refuse,
    /// Nothing passes either way, and neither does the end of a connection: each side keeps its half open, as when the
    /// other host has lost its power. What was under way passes when the fault ends.
    Freeze,
}

/// A proxy in front of one server. Dropping it ends its connections.
pub struct FaultProxy {
    wire: Arc<Wire>,
    port: u16,
    server_port: Arc<AtomicU16>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts one that passes everything to this port of this machine.
    pub async fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let wire = Arc::new(Wire::new());
        let server_port = Arc::new(AtomicU16::new(server_port));
        let accepting = tokio::spawn(accept(listener, server_port.clone(), wire.clone()));
        Self {
            wire,
            port,
            server_port,
            accepting,
        }
    }

    /// From now on, pass new connections to this port of this machine, as a name does that leads to another server after a
    /// failover. Those that are open stay where they are.
    pub fn lead_to(&self, server_port: u16) {
        self.server_port.store(server_port, Ordering::SeqCst);
    }

    /// Where clients connect.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A server's URL, by way of this proxy.
    pub fn url(&self, server_url: &str, server_port: u16) -> String {
        server_url.replacen(&format!(":{server_port}"), &format!(":{}", self.port), 1)
    }

    /// From now on, do this.
    pub fn set(&self, fault: Fault) {
        self.wire.set(fault);
    }

    /// Closes all connections; new ones are welcome.
    pub fn cut(&self) {
        self.wire.cut();
    }

    /// Lets so many more bytes of requests pass, then cuts the connection that they came by.
    pub fn cut_after_requests(&self, bytes: u64) {
        self.wire.limit(Direction::ToServer, bytes);
    }

    /// Lets so many more bytes of answers pass, then cuts the connection that they came by.
    pub fn cut_after_answers(&self, bytes: u64) {
        self.wire.limit(Direction::ToClient, bytes);
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> u64 {
        self.wire.connections()
    }

    /// How many connections are open now.
    pub fn open(&self) -> u64 {
        self.wire.open()
    }

    /// How many bytes of requests have come from clients so far.
    pub fn requested(&self) -> u64 {
        self.wire.arrived(Direction::ToServer)
    }

    /// How many bytes of answers have come from the server so far, passed on or not.
    pub fn answered(&self) -> u64 {
        self.wire.arrived(Direction::ToClient)
    }

    /// Waits until the server has answered with more than so many bytes.
    ///
    /// # Panics
    /// When it has not after 30 seconds.
    pub async fn wait_until_answered(&self, more_than: u64) {
        let began = Instant::now();
        while self.answered() <= more_than {
            assert!(began.elapsed() < Duration::from_secs(30), "the server has not answered");
            sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.wire.cut();
    }
}

async fn accept(listener: TcpListener, server_port: Arc<AtomicU16>, wire: Arc<Wire>) {
    while let Ok((client, _)) = listener.accept().await {
        wire.count_connection();
        if wire.fault() == Fault::Refuse {
            continue;
        }
        let wire = wire.clone();
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, server_port.load(Ordering::SeqCst)));
        tokio::spawn(async move {
            // A server that is down closes the client's connection.
            if let Ok(server) = TcpStream::connect(server).await {
                wire.carry(client, server).await;
            }
        });
    }
}

#[cfg(test)]
mod tests;
