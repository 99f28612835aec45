//! A Django project with django-celery-outbox, its database and broker, and workers for its tasks.
#![allow(dead_code, reason = "every test binary uses a part of it")]

pub(crate) mod database;
mod enqueuer;
mod journal;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sandbox::{block_on, connect, test_variable};
pub(crate) use enqueuer::Enqueuer;
pub(crate) use journal::Journal;

/// Generous: the machine may be compiling at the same time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Project {
    folder: TempDir,
    /// The setting for Django.
    django: Value,
    /// The setting for `sendoff`.
    pub(crate) database: String,
    pub(crate) broker: String,
    pub(crate) backend: String,
    pub(crate) queue: String,
}

impl Project {
    pub(crate) fn on_postgres(broker: &str, backend: &str) -> Self {
        let (url, schema) = (test_variable("SENDOFF_TEST_POSTGRES_URL"), new_name());
        let config: tokio_postgres::Config = url.parse().unwrap();
        let host = match &config.get_hosts()[0] {
            tokio_postgres::config::Host::Tcp(host) => host.clone(),
            tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
        };
        let django = json!({
            "ENGINE": "django.db.backends.postgresql",
            "NAME": config.get_dbname(), "USER": config.get_user(), "HOST": host, "PORT": config.get_ports()[0],
            "PASSWORD": config.get_password().map(|password| String::from_utf8_lossy(password).into_owned()),
            "OPTIONS": {"options": format!("-c search_path={schema}")},
        });
        let create = format!("CREATE SCHEMA {schema}");
        block_on(async { connect(&url).await.batch_execute(&create).await.unwrap() });
        let mark = if url.contains('?') { '&' } else { '?' };
        let database = format!("{url}{mark}options=-csearch_path%3D{schema}");
        Self::new(django, database, broker, backend)
    }

    pub(crate) fn on_mysql(broker: &str, backend: &str) -> Self {
        use mysql_async::prelude::Queryable as _;
        let (url, name) = (test_variable("SENDOFF_TEST_MYSQL_URL"), new_name());
        let opts = mysql_async::Opts::from_url(&url).unwrap();
        let (host, port) = (opts.ip_or_hostname().to_owned(), opts.tcp_port());
        let (user, password) = (opts.user().unwrap_or_default(), opts.pass().unwrap_or_default());
        let django = json!({
            "ENGINE": "django.db.backends.mysql",
            "NAME": name, "USER": user, "PASSWORD": password, "HOST": host, "PORT": port,
        });
        block_on(async {
            let mut conn = mysql_async::Conn::from_url(&url).await.unwrap();
            conn.query_drop(format!("CREATE DATABASE {name}")).await.unwrap();
            conn.disconnect().await.unwrap();
        });
        let secret = if password.is_empty() {
            String::new()
        } else {
            format!(":{password}")
        };
        let database = format!("mysql://{user}{secret}@{host}:{port}/{name}");
        Self::new(django, database, broker, backend)
    }

    pub(crate) fn on_sqlite(broker: &str, backend: &str) -> Self {
        let mut project = Self::new(Value::Null, String::new(), broker, backend);
        let path = project.path("shop.sqlite3");
        project.django = json!({"ENGINE": "django.db.backends.sqlite3", "NAME": path});
        project.database = format!("sqlite:{}", path.display());
        project
    }

    fn new(django: Value, database: String, broker: &str, backend: &str) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            django,
            database,
            broker: broker.to_owned(),
            backend: backend.to_owned(),
            queue: new_name(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn python(&self, variable: &str, folder: &Path) -> Command {
        let mut command = Command::new(test_variable(variable));
        command
            .current_dir(folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SHOP_DATABASE", self.django.to_string())
            .env("SHOP_BROKER", &self.broker)
            .env("SHOP_BACKEND", &self.backend)
            .env("SHOP_QUEUE", &self.queue)
            .env("SHOP_JOURNAL", self.path("journal"))
            .env("SHOP_GATE", self.path("gate"))
            .stdin(Stdio::null());
        command
    }

    fn django(&self, script: &str, args: &[&str]) -> Command {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/django");
        let mut command = self.python("SENDOFF_TEST_DJANGO", &folder);
        command.arg(script).args(args);
        command
    }

    /// Starts a Django process that creates the tables, and then enqueues.
    pub(crate) fn enqueuer(&self) -> Enqueuer {
        Enqueuer::start(self.django("enqueue.py", &[]))
    }

    /// Starts the package's own relay.
    pub(crate) fn python_relay(&self, args: &[&str]) -> Process {
        let args: Vec<&str> = ["celery_outbox_relay"].iter().chain(args).copied().collect();
        Process::start(self.django("manage.py", &args), self.path("python-relay.log"))
    }

    fn sendoff(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sendoff"));
        command
            .current_dir(self.folder.path())
            .args(["celery-relay", "--database", &self.database, "--broker", &self.broker])
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// Starts `sendoff celery-relay`.
    pub(crate) fn relay(&self, args: &[&str]) -> Process {
        Process::start(self.sendoff(args), self.path("relay.log"))
    }

    /// Starts a worker of the Celery whose Python `variable` names, with further settings. It waits at the gate.
    pub(crate) fn worker(&self, variable: &str, settings: &[(&str, &str)]) -> Process {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sinks/celery/tests/fixtures/worker");
        let mut command = self.python(variable, &folder);
        command
            .envs(settings.iter().copied())
            .args([
                "-m",
                "celery",
                "-A",
                "shop",
                "worker",
                "--pool",
                "solo",
                "--loglevel",
                "INFO",
            ])
            .args(["--without-gossip", "--without-mingle", "--without-heartbeat", "-n"])
            .arg(format!("{}@localhost", self.queue));
        Process::start(command, self.path("worker.log"))
    }

    /// Lets the worker take tasks.
    pub(crate) fn open_the_gate(&self) {
        File::create(self.path("gate")).unwrap();
    }

    /// The notes of the tasks.
    pub(crate) fn journal(&self) -> Journal {
        Journal::new(self.path("journal"))
    }

    /// The output of the relay and the worker, for the report of a failure.
    pub(crate) fn logs(&self) -> String {
        let log = |name| std::fs::read_to_string(self.path(name)).unwrap_or_default();
        format!("{}\n{}", log("relay.log"), log("worker.log"))
    }
}

fn new_name() -> String {
    format!("shop_{}", &sendoff::Uuid::new_v4().simple().to_string()[..12])
}

/// A process that ends with the test.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(mut command: Command, log: PathBuf) -> Self {
        let output = File::options().create(true).append(true).open(&log).unwrap();
        let child = command
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Self { child, log }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end, and returns its exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(
                began.elapsed() < PATIENCE,
                "it did not end: {}",
                std::fs::read_to_string(&self.log).unwrap()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
