//! Somebody else's transaction in the way: the store does the whole of its own again, and its caller hears nothing of it.

use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use sendoff::store::{RelayStore, WorkStore};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_testkit::Log;
use tokio::time::{sleep, timeout};
use tracing::subscriber::DefaultGuard;

use crate::scratch::{LEASE, Relay, Scratch, connect, message, url};

/// Half of it, a second, is how long the store waits for a lock.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3);

const PATIENCE: Duration = Duration::from_secs(30);

/// How the rival gets in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Conflict {
    /// It holds a lock for longer than the store waits.
    LockTimeout,
    /// It holds what the store waits for, and then asks for what the store holds.
    Deadlock,
}

impl Conflict {
    /// What the server says to the store.
    fn words(self) -> &'static str {
        match self {
            Self::LockTimeout => "Lock wait timeout exceeded",
            Self::Deadlock => "Deadlock found",
        }
    }
}

struct Stage {
    scratch: Scratch,
    store: MysqlStore,
    log: Log,
    _guard: DefaultGuard,
}

impl Stage {
    async fn new() -> Self {
        let scratch = Scratch::new().await;
        // What the rival changes.
        scratch.run("CREATE TABLE outbox_rival (number INT PRIMARY KEY)").await;
        let config = MysqlConfig::new(url()).names(scratch.names.clone());
        let store = MysqlStore::new(config.statement_timeout(STATEMENT_TIMEOUT)).unwrap();
        let (log, _guard) = Log::collect(tracing::Level::DEBUG);
        Self {
            scratch,
            store,
            log,
            _guard,
        }
    }

    /// Makes the call while a rival holds `first`, and lets go of it once the call has met it. For a deadlock the call holds
    /// `second` when it meets the rival.
    async fn meet<T>(
        &self,
        conflict: Conflict,
        (first, second): (&str, &str),
        call: impl Future<Output = sendoff::Result<T>>,
    ) -> T {
        let mut rival = self.rival().await;
        rival.query_drop(self.scratch.names.render(first)).await.unwrap();
        let ends = async {
            match conflict {
                Conflict::LockTimeout => {
                    self.until("the call has met the rival", async || self.log.says(conflict.words()))
                        .await;
                }
                Conflict::Deadlock => {
                    self.until("the call waits for the rival", async || self.is_blocked().await)
                        .await;
                    rival.query_drop(self.scratch.names.render(second)).await.unwrap();
                }
            }
            rival.query_drop("ROLLBACK").await.unwrap();
        };
        let (answer, ()) = tokio::join!(call, ends);
        assert!(self.log.says("transaction_conflict"), "it was not done again");
        assert!(self.log.says(conflict.words()), "{conflict:?}");
        answer.unwrap_or_else(|error| panic!("{conflict:?}: {error}"))
    }

    /// A transaction that has changed much: of two that deadlock, the server rolls back the one that has changed less.
    async fn rival(&self) -> Conn {
        let mut conn = connect().await;
        conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION")
            .await
            .unwrap();
        let rows: Vec<String> = (0..500).map(|number| format!("({number})")).collect();
        let insert = format!("INSERT INTO outbox_rival VALUES {}", rows.join(", "));
        conn.query_drop(self.scratch.names.render(&insert)).await.unwrap();
        conn
    }

    /// Whether a statement on the tables of this test waits for a lock.
    async fn is_blocked(&self) -> bool {
        let sql = format!(
            "SELECT count(*) FROM information_schema.innodb_trx \
             WHERE trx_state = 'LOCK WAIT' AND INSTR(trx_query, '{}') > 0",
            self.scratch.names.schema().unwrap()
        );
        connect().await.query_first::<u64, _>(sql).await.unwrap() > Some(0)
    }

    async fn until(&self, what: &str, check: impl AsyncFn() -> bool) {
        let waited = timeout(PATIENCE, async {
            while !check().await {
                // InnoDB takes no new look for whoever asks more often than every 100 ms.
                sleep(Duration::from_millis(120)).await;
            }
        });
        assert!(waited.await.is_ok(), "waited in vain: {what}");
    }

    async fn emit_jobs(&self, count: usize) {
        let mut tx = self.store.begin_jobs().await.unwrap();
        tx.emit(&vec![message("job"); count]).await.unwrap();
        tx.commit().await.unwrap();
    }
}

async fn settling_is_done_again(conflict: Conflict) {
    let stage = Stage::new().await;
    let messages = ["first", "second"].map(|topic| message(topic).key("k"));
    stage.scratch.emit(&messages).await;
    let mut relay = Relay::new(stage.store.clone()).await;
    let read = relay.read(2).await;
    let lock = |at: usize| {
        let row_ref = &read[at].row_ref;
        format!(
            "SELECT 1 FROM outbox_message WHERE lane = {} AND seq = {} FOR UPDATE",
            row_ref.lane, row_ref.seq
        )
    };
    let settlements: Vec<_> = read.iter().map(|outgoing| relay.settlement(outgoing, &[])).collect();
    let call = stage.store.settle(relay.owner, &settlements);
    let report = stage.meet(conflict, (&lock(1), &lock(0)), call).await;
    assert!(report.lost.is_empty());
    assert_eq!(stage.store.backlog().await.unwrap().ready, 0);
}

async fn marking_is_done_again(conflict: Conflict) {
    let stage = Stage::new().await;
    stage.emit_jobs(2).await;
    let jobs = stage.store.claim_batch("w", 2, LEASE).await.unwrap();
    let claims = [jobs[0].claim, jobs[1].claim];
    let lock = |at: usize| format!("SELECT 1 FROM outbox_job WHERE seq = {} FOR UPDATE", claims[at].seq);
    let call = stage.store.mark_success("w", &claims);
    let lost = stage.meet(conflict, (&lock(1), &lock(0)), call).await;
    assert_eq!(lost, []);
    assert_eq!(stage.store.job_counts().await.unwrap().total(), 0);
}

/// A claim passes over rows that are locked. What it can meet is a lock on the place in the index where the end of its
/// lease goes.
async fn claiming_is_done_again(conflict: Conflict) {
    let stage = Stage::new().await;
    stage.emit_jobs(2).await;
    let seq = stage
        .scratch
        .value("SELECT CAST(min(seq) AS CHAR) FROM outbox_job")
        .await;
    let row_ref = "SELECT 1 FROM outbox_job FORCE INDEX (ix_outbox_job_due) \
        WHERE next_attempt_at > UTC_TIMESTAMP(6) + INTERVAL 1 SECOND FOR UPDATE";
    let row = format!("SELECT 1 FROM outbox_job WHERE seq = {seq} FOR UPDATE");
    let call = stage.store.claim_batch("w", 2, LEASE);
    let jobs = stage.meet(conflict, (row_ref, &row), call).await;
    // The row that the rival still had for a moment may have been passed over.
    let rest = stage.store.claim_batch("w", 2, LEASE).await.unwrap();
    assert!(!jobs.is_empty());
    assert_eq!(jobs.len() + rest.len(), 2);
}

#[tokio::test]
async fn a_settlement_that_waits_too_long_for_a_lock_is_done_again() {
    settling_is_done_again(Conflict::LockTimeout).await;
}

#[tokio::test]
async fn a_settlement_that_deadlocks_is_done_again() {
    settling_is_done_again(Conflict::Deadlock).await;
}

#[tokio::test]
async fn a_mark_that_waits_too_long_for_a_lock_is_done_again() {
    marking_is_done_again(Conflict::LockTimeout).await;
}

#[tokio::test]
async fn a_mark_that_deadlocks_is_done_again() {
    marking_is_done_again(Conflict::Deadlock).await;
}

#[tokio::test]
async fn a_claim_that_waits_too_long_for_a_lock_is_done_again() {
    claiming_is_done_again(Conflict::LockTimeout).await;
}

#[tokio::test]
async fn a_claim_that_deadlocks_is_done_again() {
    claiming_is_done_again(Conflict::Deadlock).await;
}
