//! A private Redis.

use std::process::Command;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::port::Port;
use super::server::{Setup, is_a_server};
use super::{Options, Server, program};

/// A Redis that has every write in its file before it answers, so that a kill loses nothing that was confirmed.
pub struct Redis {
    server: Server,
    tls_port: Option<Port>,
}

is_a_server!(Redis);

impl Redis {
    /// Starts one with an empty database.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// Starts one that is set up so; `lines` are those of `redis.conf`.
    pub async fn start_with(options: Options) -> Self {
        let folder = program::folder("redis");
        let port = Port::reserve();
        let home = folder.path().display();
        let mut lines = vec![
            "bind 127.0.0.1".to_owned(),
            format!("port {}", port.number),
            format!("dir {home}"),
            "appendonly yes".to_owned(),
            "appendfsync always".to_owned(),
            "save \"\"".to_owned(),
        ];
        let tls_port = options.tls.map(|certificate| {
            certificate.write_to(folder.path());
            let tls_port = Port::reserve();
            lines.extend([
                format!("tls-port {}", tls_port.number),
                format!("tls-ca-cert-file {home}/ca.pem"),
                format!("tls-cert-file {home}/server.pem"),
                format!("tls-key-file {home}/server.key"),
                format!(
                    "tls-auth-clients {}",
                    if options.client_certificates { "yes" } else { "optional" }
                ),
            ]);
            tls_port
        });
        let is_locked = |line: &String| line.starts_with("requirepass") || line.starts_with("user default");
        let locked = options.lines.iter().any(is_locked);
        lines.extend(options.lines);
        let config = folder.path().join("redis.conf");
        program::write(&config, lines);
        let setup = Setup {
            name: "Redis",
            command: Box::new(move || {
                let mut command = Command::new(program::find("SENDOFF_TEST_REDIS_SERVER", "redis-server"));
                command.arg(&config);
                command
            }),
            hello: b"PING\r\n",
            // One that still loads its data answers in other words.
            greeting: if locked { b"-NOAUTH" } else { b"+PONG" },
        };
        Self {
            server: Server::start(setup, port, folder).await,
            tls_port,
        }
    }

    /// Where to connect.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Where to connect with TLS.
    pub fn tls_url(&self) -> String {
        let port = self.tls_port.as_ref().expect("this Redis was started without TLS");
        format!("rediss://localhost:{}", port.number)
    }

    /// The port that nodes of a cluster know each other by.
    pub(super) fn node_port(&self) -> u16 {
        self.tls_port.as_ref().map_or(self.port(), |port| port.number)
    }

    /// Runs a command that needs no quotes, without TLS, and returns the answer as it comes over the wire.
    pub(super) async fn say(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).await.expect("it runs");
        let asked = stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).await;
        asked.expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        assert!(!answer.starts_with('-'), "{command}: {answer}");
        answer
    }
}
