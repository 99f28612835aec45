//! The write lock is everybody's: nothing of ours keeps it, and whoever does is named.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::task::Poll;
use std::time::Duration;

use rusqlite::Connection;
use sendoff::ErrorKind;
use sendoff::store::{EmitStore, OwnerId, RelayCard, RelayStore};

use crate::outbox::{TestOutbox, text};

/// Where the process that plays another program finds the file.
const FILE: &str = "SENDOFF_TEST_LOCKED_FILE";

/// Begins something, and stops waiting for it at once.
async fn abandon(work: impl Future) {
    let mut work = Box::pin(work);
    std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context).is_ready())).await;
}

/// Writes as another program does, which waits for five seconds.
fn write(outbox: &TestOutbox) {
    outbox.run("BEGIN IMMEDIATE; INSERT INTO outbox_setting (name, value) VALUES ('x', random()) ON CONFLICT DO NOTHING; COMMIT");
}

#[tokio::test]
async fn no_transaction_stays_open_when_its_caller_goes_away() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    let settlements = [relay.settlement(&row, &[])];
    for _ in 0..20 {
        abandon(outbox.store.begin()).await;
        write(&outbox);
        let mut transaction = outbox.store.begin().await.unwrap();
        abandon(transaction.emit(&[text("b")])).await;
        drop(transaction);
        write(&outbox);
        let mut transaction = outbox.store.begin().await.unwrap();
        transaction.emit(&[text("b")]).await.unwrap();
        abandon(transaction.rollback()).await;
        write(&outbox);
        abandon(outbox.store.settle(relay.owner, &settlements)).await;
        abandon(outbox.store.heartbeat(relay.owner, Duration::from_secs(60))).await;
        abandon(outbox.store.evict()).await;
        write(&outbox);
    }
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 0);
}

/// The other program: takes the write lock and keeps it until it is killed. Does nothing in a usual run of the tests.
#[test]
fn holds_the_write_lock_where_a_test_asks_for_it() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    println!("\nlocked");
    // Until the test that began this ends.
    let _ = std::io::stdin().read(&mut [0]);
}

/// Ends it whatever happens.
struct Other(Child);

impl Other {
    fn lock(outbox: &TestOutbox) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "takeover::holds_the_write_lock_where_a_test_asks_for_it",
                "--nocapture",
            ])
            .env(FILE, outbox.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        assert!(said.lines().any(|line| line.unwrap() == "locked"));
        Self(child)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_was_stopped_with_the_write_lock_is_named_until_it_is_gone() {
    let outbox = TestOutbox::with(|config| config.busy_timeout(Duration::from_millis(50))).await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    let settlements = [relay.settlement(&row, &[])];
    outbox.run("UPDATE outbox_relay SET until = until - 3600000000");
    let other = Other::lock(&outbox);
    let pid = other.0.id().to_string();
    let error = outbox.store.evict().await.unwrap_err();
    assert!(error.to_string().contains(&format!("process {pid} ")), "{error}");
    assert!(!error.to_string().contains("stopped"), "{error}");

    assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    let stopped = |error: &sendoff::Error| error.to_string().contains("holds the write lock and is stopped");
    // The signal may take a moment to arrive.
    let began = std::time::Instant::now();
    while !stopped(&outbox.store.evict().await.unwrap_err()) {
        assert!(began.elapsed() < Duration::from_secs(30));
    }
    let errors = [
        outbox.store.settle(relay.owner, &settlements).await.unwrap_err(),
        outbox
            .store
            .register(OwnerId::random(), &RelayCard::named("test"), Duration::from_secs(60))
            .await
            .unwrap_err(),
        outbox.store.begin().await.err().unwrap(),
    ];
    for error in errors {
        assert!(error.kind() == ErrorKind::Busy && error.is_temporary(), "{error}");
        assert!(
            stopped(&error) && error.to_string().contains(&format!("kill -CONT {pid}")),
            "{error}"
        );
    }
    drop(other);
    assert_eq!(outbox.store.evict().await.unwrap(), 80);
    assert!(!relay.settle_all(&settlements).await.lost.is_empty());
}
