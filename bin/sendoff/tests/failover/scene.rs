//! A relay with two webhooks, and an outbox on the test's own servers.

use std::process::Stdio;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::endpoint::Endpoint;
use super::rows::{rows, try_rows};
use crate::sandbox::{Running, Sandbox, TestDatabase, lines, wait_until};

/// Generous: the machine may be compiling at the same time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
    pub(crate) endpoint: Endpoint,
    /// Keeps the webhooks and the proxies running.
    pub(crate) runtime: Runtime,
}

/// A message that is ready.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) lane: u16,
    pub(crate) seq: u64,
    pub(crate) id: String,
    pub(crate) topic: String,
    /// Empty if it has none.
    pub(crate) key: String,
}

impl Scene {
    /// With migrated tables. Relays have this lease, and retry a failed message after this delay.
    pub(crate) fn new(sandbox: Sandbox, lease: Duration, again: Duration) -> Self {
        let runtime = Runtime::new().unwrap();
        let endpoint = runtime.block_on(Endpoint::start());
        let scene = Self {
            sandbox,
            endpoint,
            runtime,
        };
        // On a busy machine a relay may lose its lease; this must not count as a crash caused by a message.
        scene.sandbox.configure(&format!(
            "[relay]\nlease = \"{}s\"\nheartbeat = \"300ms\"\ncrash_limit = 10\n[retry]\nbase = \"{}s\"\n[log]\nformat = \"json\"\n{}",
            lease.as_secs(),
            again.as_secs(),
            scene.endpoint.toml()
        ));
        scene.sandbox.ok(["migrate"]);
        scene
    }

    /// A relay that connects to the database by this URL, or by the configured one.
    pub(crate) fn relay(&self, log: &str, url: Option<&str>) -> Running {
        let file = std::fs::File::create(self.sandbox.path(log)).unwrap();
        let mut command = self.sandbox.command(["relay"]);
        if let Some(url) = url {
            command.env("SENDOFF_DATABASE__URL", url);
        }
        Running::start(command.stdout(Stdio::null()).stderr(file))
    }

    /// Waits until a relay holds at least this many lanes.
    #[track_caller]
    pub(crate) fn wait_for_lanes(&self, at: &TestDatabase, relay: &Running, count: usize) {
        wait_until(&format!("the relay holds {count} lanes"), PATIENCE, || {
            lanes_of(at, relay).is_ok_and(|held| held >= count)
        });
    }

    /// The log has a line with this event.
    pub(crate) fn has_logged(&self, log: &str, event: &str) -> bool {
        let log = lines(&self.sandbox.path(log));
        log.iter().any(|line| line["event"] == event)
    }

    /// Stops a relay cleanly.
    #[track_caller]
    pub(crate) fn stop(&self, mut relay: Running, log: &str) {
        relay.signal(rustix::process::Signal::TERM);
        let status = relay.end(PATIENCE);
        assert_eq!(status.code(), Some(0), "{}", self.sandbox.read(log));
    }
}

/// How many lanes a relay holds, by the number of its process.
pub(crate) fn lanes_of(at: &TestDatabase, relay: &Running) -> Result<usize, String> {
    let sql = format!(
        "SELECT count(*) FROM outbox_lane JOIN outbox_relay ON outbox_relay.owner = outbox_lane.owner WHERE name LIKE '%:{}'",
        relay.0.id()
    );
    Ok(try_rows(at, &sql)?[0][0].parse().unwrap())
}

/// The ready messages, in order.
#[track_caller]
pub(crate) fn ready(at: &TestDatabase) -> Vec<Entry> {
    let quote = if matches!(at, TestDatabase::Mysql { .. }) {
        '`'
    } else {
        '"'
    };
    let sql = format!("SELECT lane, seq, id, topic, {quote}key{quote} FROM outbox_message");
    let mut entries: Vec<Entry> = rows(at, &sql)
        .into_iter()
        .map(|row| Entry {
            lane: row[0].parse().unwrap(),
            seq: row[1].parse().unwrap(),
            id: row[2].clone(),
            topic: row[3].clone(),
            key: row[4].clone(),
        })
        .collect();
    entries.sort();
    entries
}
