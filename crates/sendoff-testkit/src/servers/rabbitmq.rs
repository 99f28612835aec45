//! A private RabbitMQ, or the one that all tests of a run share.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::port::Port;
use super::server::{Setup, is_a_server};
use super::{Options, Server, program};

/// How a private instance is started; the shared one is started by the same text.
const SCRIPT: &str = include_str!("rabbitmq.sh");

/// A RabbitMQ of one test. It takes seconds to start: tests that neither kill it nor change its settings use
/// [`RabbitMq::shared`].
pub struct RabbitMq {
    server: Server,
    tls_port: Option<Port>,
    /// For Erlang's register of nodes, and for what nodes and rabbitmqctl say to each other.
    _more_ports: [Port; 2],
}

is_a_server!(RabbitMq);

impl RabbitMq {
    /// The one that `cargo xtask` has started for all tests of this run.
    pub fn shared() -> SharedRabbitMq {
        let variable = |name: &str| {
            std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run the tests with `cargo xtask test`"))
        };
        SharedRabbitMq {
            url: variable("SENDOFF_TEST_RABBITMQ_URL"),
            home: variable("SENDOFF_TEST_RABBITMQ_HOME").into(),
        }
    }

    /// Starts one with an empty `/`.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// Starts one that is set up so; `lines` are those of `rabbitmq.conf`.
    pub async fn start_with(options: Options) -> Self {
        // Fails before the shell would, with advice.
        program::find("SENDOFF_TEST_RABBITMQ_SERVER", "rabbitmq-server");
        let folder = program::folder("rabbitmq");
        let tls_port = options.tls.map(|certificate| {
            certificate.write_to(folder.path());
            Port::reserve()
        });
        let mut lines = options.lines;
        if options.client_certificates {
            lines.push("ssl_options.verify = verify_peer".to_owned());
            lines.push("ssl_options.fail_if_no_peer_cert = true".to_owned());
        }
        program::write(&folder.path().join("more.conf"), lines);
        let (port, more_ports) = (Port::reserve(), [Port::reserve(), Port::reserve()]);
        let ports = [
            port.number,
            more_ports[0].number,
            more_ports[1].number,
            tls_port.as_ref().map_or(0, |port| port.number),
        ];
        let home = folder.path().to_owned();
        let setup = Setup {
            name: "RabbitMQ",
            command: Box::new(move || {
                let mut command = Command::new("sh");
                command.args(["-c", SCRIPT, "rabbitmq"]).arg(&home);
                command.args(ports.map(|port| port.to_string()));
                command
            }),
            // It answers with a method frame on channel 0.
            hello: b"AMQP\x00\x00\x09\x01",
            greeting: b"\x01\x00\x00",
        };
        Self {
            server: Server::start(setup, port, folder).await,
            tls_port,
            _more_ports: more_ports,
        }
    }

    /// Where to connect, as `guest`, to `/`.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port())
    }

    /// Where to connect with TLS.
    pub fn tls_url(&self) -> String {
        let port = self.tls_port.as_ref().expect("this RabbitMQ was started without TLS");
        format!("amqps://guest:guest@localhost:{}/%2f", port.number)
    }

    /// Runs `rabbitmqctl` (about a second) and returns what it prints.
    pub async fn ctl(&self, args: &[&str]) -> String {
        ctl(self.folder(), args).await
    }

    /// Switches a plugin on (a few seconds).
    pub async fn enable_plugin(&self, name: &str) {
        run(self.folder(), "rabbitmq-plugins", &["enable", name]).await;
    }

    /// Raises the memory alarm, so that the broker blocks everybody who publishes, or ends it.
    pub async fn memory_alarm(&self, on: bool) {
        let limit: &[&str] = if on { &["0"] } else { &["absolute", "1GB"] };
        let mut args = vec!["set_vm_memory_high_watermark"];
        args.extend(limit);
        self.ctl(&args).await;
    }
}

/// The RabbitMQ that all tests of a run share: every test uses names of its own, and changes nothing for the others.
#[derive(Debug, Clone)]
pub struct SharedRabbitMq {
    url: String,
    home: PathBuf,
}

impl SharedRabbitMq {
    /// Where to connect, as `guest`, to `/`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs `rabbitmqctl` (about a second) and returns what it prints.
    pub async fn ctl(&self, args: &[&str]) -> String {
        ctl(&self.home, args).await
    }
}

async fn ctl(home: &Path, args: &[&str]) -> String {
    run(home, "rabbitmqctl", args).await
}

/// Runs one of RabbitMQ's tools.
async fn run(home: &Path, tool: &str, args: &[&str]) -> String {
    let mut command = Command::new("sh");
    let script = format!(". \"$0/env\" && exec {tool} --quiet \"$@\"");
    command.args(["-c", &script]).arg(home).args(args).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    let output = output.expect("waiting does not panic").expect("there is a shell");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {args:?} failed:\n{printed}{complaint}");
    printed
}
