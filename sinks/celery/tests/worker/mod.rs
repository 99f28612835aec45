//! A relay and a Celery worker.
#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Backlog, EmitTransaction as _, RelayStore as _};
use sendoff::{Message, Uuid};
use sendoff_relay::{Relay, RetryPolicy, TopicPolicy};
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_testkit::MemoryStore;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Long, because the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An outbox and a relay for its tasks.
pub(crate) struct Service {
    pub(crate) store: MemoryStore,
    stop: CancellationToken,
}

impl Service {
    pub(crate) fn start(config: &CeleryConfig) -> Self {
        let store = MemoryStore::new();
        let relay = Relay::builder(Arc::new(store.clone()))
            .sink("celery", Arc::new(CelerySink::new(config).unwrap()))
            .route("*".parse().unwrap(), ["celery"])
            .default_policy(TopicPolicy {
                retry: RetryPolicy {
                    base: Duration::from_millis(50),
                    max: Duration::from_millis(500),
                    attempts: 1000,
                    ..RetryPolicy::default()
                },
                ..TopicPolicy::default()
            })
            .build()
            .unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(relay.run(stop.clone()));
        Self { store, stop }
    }

    /// Emits in one transaction.
    pub(crate) async fn emit<M: Into<Message>>(&self, messages: impl IntoIterator<Item = M>) -> Vec<Uuid> {
        let mut tx = self.store.transaction().await.unwrap();
        let emitted = self.store.outbox().emit_many(&mut tx, messages).await.unwrap();
        Box::new(tx).commit().await.unwrap();
        emitted.into_iter().map(sendoff::Emitted::id).collect()
    }

    /// Waits until no task is left, and returns the number of dead ones.
    pub(crate) async fn drained(&self) -> u64 {
        let began = Instant::now();
        loop {
            let backlog = self.store.backlog().await.unwrap();
            if backlog
                == (Backlog {
                    dead: backlog.dead,
                    ..Backlog::default()
                })
            {
                return backlog.dead;
            }
            assert!(began.elapsed() < PATIENCE, "stuck: {backlog:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A worker that stops with the test.
pub(crate) struct Worker {
    child: Child,
    folder: TempDir,
}

impl Worker {
    /// Starts a worker with the Python in this environment variable.
    pub(crate) fn start(variable: &str, broker: &str, backend: &str, queue: &str) -> Self {
        Self::start_with(variable, broker, backend, queue, &[])
    }

    /// Starts a worker whose application also reads these variables.
    pub(crate) fn start_with(
        variable: &str,
        broker: &str,
        backend: &str,
        queue: &str,
        settings: &[(&str, &str)],
    ) -> Self {
        let python = std::env::var_os(variable)
            .unwrap_or_else(|| panic!("{variable} is not set: run the tests with `cargo xtask test`"));
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let child = Command::new(python)
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
            .arg(format!("{queue}@localhost"))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/worker"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SHOP_BROKER", broker)
            .env("SHOP_BACKEND", backend)
            .env("SHOP_QUEUE", queue)
            .env("SHOP_JOURNAL", folder.path().join("journal"))
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    /// The entries of the tasks' journal so far, in order.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("journal")).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for a matching line.
    pub(crate) async fn line(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            if let Some(line) = self.journal().into_iter().find(&fits) {
                return line;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(
                began.elapsed() < PATIENCE && ended.is_none(),
                "no {what}; the worker ({ended:?}) did {:#?} and logged:\n{}",
                self.journal(),
                std::fs::read_to_string(self.path("log")).unwrap()
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a task has run, and returns its journal line.
    pub(crate) async fn ran(&mut self, id: Uuid) -> Value {
        let id = id.to_string();
        self.line(&id, |line| line["id"] == id.as_str()).await["result"].clone()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
