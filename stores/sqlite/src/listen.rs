//! Wake-ups from other processes.

use std::time::Duration;

use async_trait::async_trait;
use sendoff::Result;
use sendoff::store::WakeListener;
use tokio::time::{Instant, sleep_until};

use crate::SqliteConfig;
use crate::connect::{Connect, Opened, Purpose};
use crate::file::FileId;
use crate::worker::Worker;

/// How often to look at most, whether or not there is something to see each time: while a backlog is delivered there always is, and
/// the relay reads on by itself. A look reads a counter in shared memory, no page of the file.
const LOOK: Duration = Duration::from_millis(5);

/// Watches `data_version`, which SQLite changes for this connection when any other one has committed. Commits of the
/// relay itself are among them, so it may ring once too often, and never too seldom. In another file the count is another.
pub(crate) struct Listener {
    worker: Worker,
    seen: Seen,
    next_look: Instant,
}

type Seen = (Option<FileId>, i64);

impl Listener {
    pub(crate) async fn start(config: &SqliteConfig) -> Result<Self> {
        let worker = Worker::start("listen", Connect::new(config, Purpose::Read))?;
        let seen = look(&worker).await?;
        Ok(Self {
            worker,
            seen,
            next_look: Instant::now(),
        })
    }
}

#[async_trait]
impl WakeListener for Listener {
    async fn woken(&mut self) -> Result<()> {
        loop {
            sleep_until(self.next_look).await;
            let seen = look(&self.worker).await?;
            self.next_look = Instant::now() + LOOK;
            if seen != self.seen {
                self.seen = seen;
                return Ok(());
            }
        }
    }
}

async fn look(worker: &Worker) -> Result<Seen> {
    let work = |opened: &mut Opened| {
        let mut version = opened.prepare_cached("PRAGMA data_version")?;
        Ok((opened.file, version.query_row([], |row| row.get(0))?))
    };
    worker.call_opened("the database file cannot be watched", work).await
}
