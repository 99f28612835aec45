//! A private broker that speaks Kafka: tansu, which keeps its records in SQLite.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::port::Port;
use super::server::{Setup, is_a_server};
use super::{Server, program};

const DATABASE: &str = "tansu.db";

/// A broker, alone in its cluster, without topics. It creates none by itself, and has a record in its file before it
/// confirms it.
pub struct Kafka {
    server: Server,
    manner: Arc<Mutex<Manner>>,
}

/// How it meets its clients.
#[derive(Clone)]
struct Manner {
    /// Where it sends them.
    advertised: String,
    /// Whether they have to log in.
    login: bool,
}

is_a_server!(Kafka);

impl Kafka {
    /// Starts one.
    pub async fn start() -> Self {
        let folder = program::folder("kafka");
        let port = Port::reserve();
        let manner = Arc::new(Mutex::new(Manner {
            advertised: address(port.number),
            login: false,
        }));
        let (home, number, how) = (folder.path().to_owned(), port.number, Arc::clone(&manner));
        let setup = Setup {
            name: "tansu",
            command: Box::new(move || {
                let Manner { advertised, login } = how.lock().unwrap().clone();
                let mut command = tansu();
                command.args(["broker", "--cluster-id", "test"]);
                command.arg("--listener-url").arg(format!("tcp://{}", address(number)));
                command
                    .arg("--advertised-listener-url")
                    .arg(format!("tcp://{advertised}"));
                command.arg("--storage-engine").arg(format!("sqlite://{DATABASE}"));
                if login {
                    command.arg("--authentication");
                }
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
            manner,
        }
    }

    /// Starts it again, and from now on it sends its clients to this address (`host:port`), from where there has to be a
    /// way to it: clients of Kafka go where a broker says that it is, not where they have found it.
    pub async fn advertise(&mut self, address: &str) {
        address.clone_into(&mut self.manner.lock().unwrap().advertised);
        self.restart().await;
    }

    /// Starts it again, and from now on it takes only clients that log in as this user, with `SCRAM-SHA-256` or
    /// `SCRAM-SHA-512`.
    pub async fn require_login(&mut self, user: &str, password: &str) {
        for mechanism in ["scram256", "scram512"] {
            self.create("user", &["--mechanism", mechanism, user, password]);
        }
        self.manner.lock().unwrap().login = true;
        self.restart().await;
    }

    /// Creates a topic, with three partitions.
    pub fn create_topic(&self, name: &str) {
        self.create("topic", &[name]);
    }

    fn create(&self, what: &str, args: &[&str]) {
        let mut create = tansu();
        let broker = format!("tcp://{}", self.address());
        create.args([what, "create", "--broker", &broker]).args(args);
        let created = create.stdin(Stdio::null()).output().expect("tansu can be run");
        assert!(created.status.success(), "no {what} was created: {created:?}");
    }

    /// Where to connect.
    pub fn address(&self) -> String {
        address(self.port())
    }

    /// Its database, to see what it has stored while the ways for clients are closed.
    pub fn database(&self) -> PathBuf {
        self.folder().join(DATABASE)
    }
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn tansu() -> Command {
    Command::new(program::find("SENDOFF_TEST_KAFKA_SERVER", "tansu"))
}
