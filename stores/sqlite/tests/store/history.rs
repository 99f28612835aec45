use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::Backup;
use sendoff::ErrorKind;
use sendoff::store::{EmitStore, History, RelayStore};

use crate::outbox::{LEASE, TestOutbox, TestRelay, text};

async fn history(relay: &TestRelay) -> History {
    relay
        .store
        .heartbeat(relay.owner, LEASE)
        .await
        .unwrap()
        .history
        .unwrap()
}

fn sibling(path: &Path, end: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// A copy of the database as it is now.
fn back_up(outbox: &TestOutbox) -> std::path::PathBuf {
    let backup = sibling(&outbox.path(), ".backup");
    outbox.run(&format!("VACUUM INTO '{}'", backup.display()));
    backup
}

/// Moves another file to the path of the database, as the documentation says.
fn put_in_place(outbox: &TestOutbox, backup: &Path) {
    for end in ["-wal", "-shm"] {
        std::fs::remove_file(sibling(&outbox.path(), end)).unwrap();
    }
    std::fs::rename(backup, outbox.path()).unwrap();
}

#[tokio::test]
async fn a_history_goes_on_while_messages_come_and_go() {
    let outbox = TestOutbox::new().await;
    let mut relay = outbox.relay().await;
    let first = history(&relay).await;
    outbox.emit(&[text("a"), text("b")]).await;
    let second = history(&relay).await;
    assert_eq!((second.breaks_with(&first), second.head), (None, first.head + 2));
    let rows = relay.outgoing().await;
    for row in &rows {
        relay.settle(row, &[]).await;
    }
    assert_eq!(history(&relay).await, second);
    assert!(!relay.page(10).await.history_changed);
}

#[cfg(unix)]
#[tokio::test]
async fn a_backup_that_is_moved_to_the_path_is_opened_by_every_connection() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("kept")]).await;
    let mut relay = outbox.relay().await;
    let mut source = outbox.store.listen().await.unwrap().unwrap();
    let backup = back_up(&outbox);
    outbox.emit(&[text("lost"), text("lost too")]).await;
    assert_eq!(relay.payloads().await, ["kept", "lost", "lost too"]);
    let before = history(&relay).await;
    outbox.store.backlog().await.unwrap();

    put_in_place(&outbox, &backup);
    outbox.emit(&[text("new"), text("newer"), text("newest")]).await;
    assert_eq!(outbox.ask::<i64>("SELECT count(*) FROM outbox_message"), 4);
    source.woken().await.unwrap();
    let after = history(&relay).await;
    assert!(after.head > before.head, "the numbers alone would not tell");
    assert!(after.breaks_with(&before).is_some());
    let page = relay.page(10).await;
    assert!(page.history_changed && page.rows.is_empty());
    let rows = relay.outgoing().await;
    assert_eq!(rows.len(), 4);
    for row in &rows {
        relay.settle(row, &[]).await;
    }
    assert_eq!(outbox.ask::<i64>("SELECT count(*) FROM outbox_message"), 0);
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 0);
    assert_eq!(history(&relay).await, after);
}

#[tokio::test]
async fn a_backup_that_is_written_into_the_file_is_another_history() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("kept")]).await;
    let mut relay = outbox.relay().await;
    let backup = back_up(&outbox);
    outbox.emit(&[text("lost")]).await;
    assert_eq!(relay.payloads().await, ["kept", "lost"]);
    let before = history(&relay).await;

    let mut live = outbox.plain();
    let from = Connection::open(&backup).unwrap();
    let copy = Backup::new(&from, &mut live).unwrap();
    copy.run_to_completion(1000, std::time::Duration::from_millis(1), None)
        .unwrap();
    drop(copy);
    outbox.emit(&[text("new")]).await;
    let after = history(&relay).await;
    assert_eq!(after.head, before.head, "the numbers alone would not tell");
    assert!(after.breaks_with(&before).is_some());
    assert!(relay.page(10).await.history_changed);
    assert_eq!(relay.payloads().await, ["kept", "new"]);
}

#[tokio::test]
async fn numbers_that_were_set_back_are_noticed_by_the_next_read() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a"), text("b"), text("c")]).await;
    let mut relay = outbox.relay().await;
    assert_eq!(relay.payloads().await, ["a", "b", "c"]);
    outbox.run("DELETE FROM outbox_message; DELETE FROM sqlite_sequence WHERE name = 'outbox_message'");
    outbox.emit(&[text("new")]).await;
    let page = relay.page(10).await;
    assert!(page.history_changed && page.rows.is_empty());
    assert_eq!(relay.payloads().await, ["new"]);
    assert!(!relay.page(10).await.history_changed);
}

#[cfg(unix)]
#[tokio::test]
async fn a_transaction_in_a_file_that_was_replaced_is_not_committed() {
    let outbox = TestOutbox::new().await;
    let backup = back_up(&outbox);
    let mut transaction = outbox.store.begin().await.unwrap();
    transaction.emit(&[text("a")]).await.unwrap();
    put_in_place(&outbox, &backup);
    let error = transaction.commit().await.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unreachable && error.is_temporary(),
        "{error}"
    );
    outbox.emit(&[text("b")]).await;
    assert_eq!(
        outbox.ask::<String>("SELECT group_concat(CAST(payload AS TEXT)) FROM outbox_message"),
        "b"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_gone_for_a_while_is_waited_for() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    assert_eq!(relay.payloads().await, ["a"]);
    let elsewhere = sibling(&outbox.path(), ".elsewhere");
    std::fs::rename(outbox.path(), &elsewhere).unwrap();
    let error = outbox.store.heartbeat(relay.owner, LEASE).await.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unreachable && error.is_temporary(),
        "{error}"
    );
    std::fs::rename(&elsewhere, outbox.path()).unwrap();
    assert!(outbox.store.heartbeat(relay.owner, LEASE).await.unwrap().alive);
    assert!(!relay.page(10).await.history_changed);
}
