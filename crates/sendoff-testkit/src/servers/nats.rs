//! A private NATS with JetStream.

use std::process::Command;

use super::port::Port;
use super::server::{Setup, is_a_server};
use super::{Options, Server, program};

/// A NATS server that keeps its streams in files.
pub struct Nats {
    server: Server,
    tls: bool,
}

is_a_server!(Nats);

impl Nats {
    /// Starts one without streams.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// Starts one that is set up so; `lines` are those of its configuration file. With TLS, every client has to use it.
    pub async fn start_with(options: Options) -> Self {
        let folder = program::folder("nats");
        let port = Port::reserve();
        let home = folder.path().display();
        let mut lines = vec![
            format!("listen: \"127.0.0.1:{}\"", port.number),
            format!("jetstream {{ store_dir: \"{home}/streams\" }}"),
        ];
        let tls = options.tls.is_some();
        if let Some(certificate) = options.tls {
            certificate.write_to(folder.path());
            let verify = options.client_certificates;
            lines.push(format!(
                "tls {{ cert_file: \"{home}/server.pem\", key_file: \"{home}/server.key\", ca_file: \"{home}/ca.pem\", \
                 verify: {verify} }}"
            ));
        }
        lines.extend(options.lines);
        let config = folder.path().join("nats.conf");
        program::write(&config, lines);
        let setup = Setup {
            name: "NATS",
            command: Box::new(move || {
                let mut command = Command::new(program::find("SENDOFF_TEST_NATS_SERVER", "nats-server"));
                command.arg("-c").arg(&config);
                command
            }),
            hello: b"",
            greeting: b"INFO ",
        };
        Self {
            server: Server::start(setup, port, folder).await,
            tls,
        }
    }

    /// Where to connect.
    pub fn url(&self) -> String {
        let (scheme, host) = if self.tls {
            ("tls", "localhost")
        } else {
            ("nats", "127.0.0.1")
        };
        format!("{scheme}://{host}:{}", self.port())
    }
}
