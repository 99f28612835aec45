//! A private Mosquitto.

use std::process::Command;

use rustix::process::geteuid;

use super::port::Port;
use super::server::{Setup, is_a_server};
use super::{Options, Server, program};

/// An MQTT broker that saves its sessions and retained messages with every change; what it has not saved, a kill loses.
pub struct Mosquitto {
    server: Server,
    tls_port: Option<Port>,
}

is_a_server!(Mosquitto);

impl Mosquitto {
    /// Starts one.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// Starts one that is set up so; `lines` are those of `mosquitto.conf`.
    pub async fn start_with(options: Options) -> Self {
        let folder = program::folder("mosquitto");
        let port = Port::reserve();
        let home = folder.path().display();
        let mut lines = vec![
            "persistence true".to_owned(),
            format!("persistence_location {home}/"),
            "autosave_on_changes true".to_owned(),
            "autosave_interval 1".to_owned(),
            // Unlimited: by default it drops all but a thousand, without a word.
            "max_queued_messages 0".to_owned(),
        ];
        if !options.lines.iter().any(|line| line.starts_with("allow_anonymous")) {
            lines.push("allow_anonymous true".to_owned());
        }
        if geteuid().is_root() {
            // It would change to an account that cannot write to the test's folder.
            lines.push("user root".to_owned());
        }
        lines.extend(options.lines);
        lines.push(format!("listener {} 127.0.0.1", port.number));
        let tls_port = options.tls.map(|certificate| {
            certificate.write_to(folder.path());
            let tls_port = Port::reserve();
            lines.extend([
                format!("listener {} 127.0.0.1", tls_port.number),
                format!("cafile {home}/ca.pem"),
                format!("certfile {home}/server.pem"),
                format!("keyfile {home}/server.key"),
                format!("require_certificate {}", options.client_certificates),
            ]);
            tls_port
        });
        let config = folder.path().join("mosquitto.conf");
        program::write(&config, lines);
        let setup = Setup {
            name: "Mosquitto",
            command: Box::new(move || {
                let mut command = Command::new(program::find("SENDOFF_TEST_MOSQUITTO", "mosquitto"));
                command.arg("-v").arg("-c").arg(&config);
                command
            }),
            // A clean MQTT 3.1.1 session of a nameless client. An answer that refuses it is an answer.
            hello: b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00",
            greeting: b"\x20\x02",
        };
        Self {
            server: Server::start(setup, port, folder).await,
            tls_port,
        }
    }

    /// Where to connect.
    pub fn url(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port())
    }

    /// Where to connect with TLS.
    pub fn tls_url(&self) -> String {
        let port = self.tls_port.as_ref().expect("this Mosquitto was started without TLS");
        format!("mqtts://localhost:{}", port.number)
    }
}
