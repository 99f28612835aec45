//! Wake-ups from other processes.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use sendoff::Result;
use sendoff::store::WakeSource;

use crate::SqliteConfig;
use crate::connect::{Connect, Purpose};
use crate::worker::Worker;

/// How often to look. A look reads a counter in shared memory, no page of the file.
const LOOK: Duration = Duration::from_millis(5);

/// Watches `data_version`, which SQLite changes for this connection when any other one has committed. Commits of the
/// relay itself are among them, so it may ring once too often, and never too seldom.
pub(crate) struct Listener {
    worker: Worker,
    version: i64,
}

impl Listener {
    pub(crate) async fn start(config: &SqliteConfig) -> Result<Self> {
        let worker = Worker::start("listen", Connect::new(config, Purpose::Read))?;
        let version = look(&worker).await?;
        Ok(Self { worker, version })
    }
}

#[async_trait]
impl WakeSource for Listener {
    async fn woken(&mut self) -> Result<()> {
        loop {
            let version = look(&self.worker).await?;
            if version != self.version {
                self.version = version;
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

async fn look(worker: &Worker) -> Result<i64> {
    let work = |connection: &mut Connection| {
        connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))
    };
    worker.call("the database cannot be watched", work).await
}
