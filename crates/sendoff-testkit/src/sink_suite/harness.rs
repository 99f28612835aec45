//! What a sink's tests provide.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use sendoff::{Outgoing, Result, Sink};
use sendoff_wire::Format;

/// What a sink has, as far as sinks may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The formats that it writes; the first one is used where the format does not matter.
    pub formats: &'static [Format],
    /// What stands before the name of a CloudEvents attribute in binary mode, such as `ce-`.
    pub attribute_prefix: &'static str,
    /// What its protocol can carry beside the body.
    pub headers: HeaderText,
    /// It refuses bodies that are larger than so many bytes.
    pub max_size: Option<usize>,
    /// It is told when nobody can receive a message: see [`Broker::make_unroutable`].
    pub unroutable: bool,
    /// The broker can be killed and started again, and keeps what it has confirmed.
    pub restart: bool,
    /// The broker answers before the first message is sent: a greeting, a login.
    pub handshake: bool,
}

/// Which texts survive as the values of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderText {
    /// None: there is only a body.
    None,
    /// What ASCII can print.
    Ascii,
    /// All, names included; what the protocol cannot carry is encoded as `sendoff_wire::escape::Encodings` tells.
    Unicode,
}

/// How a broker is to be set up for a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// The case kills the broker, so it must be nobody else's. Otherwise a queue of its own on a shared one will do.
    pub private: bool,
}

/// How a sink connects.
#[derive(Debug, Clone)]
pub struct Connection {
    /// On 127.0.0.1: the broker's port, or that of a proxy in front of it.
    pub port: u16,
    /// How it writes.
    pub format: Format,
    /// Log in with this password, which is wrong. `None`: as the broker wants it.
    pub password: Option<String>,
}

/// A message as a consumer has received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// What the protocol says about the body, where it says it.
    pub content_type: Option<String>,
    /// Headers, properties, fields: whatever came beside the body.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// Starts brokers for a sink's cases. A broker that cannot be started is an error: no case is skipped.
#[async_trait]
pub trait SinkHarness: Send + Sync + 'static {
    /// What the sink has.
    fn capabilities(&self) -> Capabilities;

    /// A broker, or a part of one, that nobody has sent anything to yet.
    ///
    /// # Errors
    /// What stands in the way; the case fails with it.
    async fn fresh(&self, setup: Setup) -> Result<Box<dyn Broker>>;
}

/// The far side of a sink under test.
#[async_trait]
pub trait Broker: Send + Sync {
    /// Where it listens on 127.0.0.1.
    fn port(&self) -> u16;

    /// Sinks will come in by this port of 127.0.0.1, too, where the suite has put its proxy. For brokers that tell their
    /// clients where they are.
    async fn reached_by(&mut self, _port: u16) {}

    /// A sink that sends to it.
    ///
    /// # Errors
    /// What the sink says about its settings.
    fn sink(&self, connection: &Connection) -> Result<Arc<dyn Sink>>;

    /// Everything that consumers have received so far, from the first message on, copies included, in the order that the
    /// broker keeps. It may panic when the broker is down.
    async fn received(&mut self) -> Vec<Received>;

    /// Changes a message so that nobody can receive it. Only with [`Capabilities::unroutable`].
    fn make_unroutable(&self, _delivery: &mut Outgoing) {
        panic!("a harness that declares `unroutable` says how to make a message so");
    }

    /// Ends the broker without a warning. Only with [`Capabilities::restart`].
    async fn kill(&mut self) {
        panic!("a harness that declares `restart` says how to kill the broker");
    }

    /// Starts it again, on the same port and with what it had confirmed. Only with [`Capabilities::restart`].
    async fn restart(&mut self) {
        panic!("a harness that declares `restart` says how to start the broker again");
    }
}
