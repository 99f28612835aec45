//! A private broker that speaks Kafka: tansu, which keeps its records in SQLite.

use std::process::Command;

use super::port::Port;
use super::server::{Setup, is_a_server};
use super::{Server, program};

/// A broker, alone in its cluster, without topics. It creates none by itself, and has a record in its file before it
/// confirms it.
pub struct Kafka {
    server: Server,
}

is_a_server!(Kafka);

impl Kafka {
    /// Starts one.
    pub async fn start() -> Self {
        let folder = program::folder("kafka");
        let port = Port::reserve();
        let (home, number) = (folder.path().to_owned(), port.number);
        let setup = Setup {
            name: "tansu",
            command: Box::new(move || {
                let mut command = Command::new(program::find("SENDOFF_TEST_KAFKA_SERVER", "tansu"));
                command.args(["broker", "--cluster-id", "test"]);
                // Clients go where the broker says that it is.
                for name in ["--listener-url", "--advertised-listener-url"] {
                    command.arg(name).arg(format!("tcp://127.0.0.1:{number}"));
                }
                command.args(["--storage-engine", "sqlite://tansu.db"]);
                // The path of the database is one from here.
                command.current_dir(&home);
                command.env("RUST_LOG", "warn");
                command
            }),
            // Which requests do you know? The answer begins with its length.
            hello: b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff",
            greeting: b"\x00\x00",
        };
        Self {
            server: Server::start(setup, port, folder).await,
        }
    }

    /// Where to connect.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }
}
