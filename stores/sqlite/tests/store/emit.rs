use std::time::Duration;

use sendoff::store::{EmitStore, RelayStore};
use sendoff::{Emitted, ErrorKind, Message, OnDuplicate};

use crate::outbox::{TestOutbox, text};

#[tokio::test]
async fn what_is_rolled_back_or_dropped_never_existed() {
    let outbox = TestOutbox::new().await;
    let mut transaction = outbox.store.begin().await.unwrap();
    transaction.emit(&[text("a").idempotency_key("once")]).await.unwrap();
    transaction.rollback().await.unwrap();
    let mut transaction = outbox.store.begin().await.unwrap();
    transaction.emit(&[text("b")]).await.unwrap();
    drop(transaction);
    outbox.emit(&[text("c").idempotency_key("once")]).await;
    assert_eq!(outbox.relay().await.payloads().await, ["c"]);
}

#[tokio::test]
async fn a_transaction_that_is_open_shows_nothing() {
    let outbox = TestOutbox::new().await;
    let mut relay = outbox.relay().await;
    let mut transaction = outbox.store.begin().await.unwrap();
    transaction.emit(&[text("a")]).await.unwrap();
    assert!(relay.read().await.is_empty());
    transaction.commit().await.unwrap();
    assert_eq!(relay.payloads().await, ["a"]);
}

#[tokio::test]
async fn a_duplicate_is_reported_with_the_first_id_or_fails() {
    let outbox = TestOutbox::new().await;
    let first = text("a").idempotency_key("once");
    outbox.emit(std::slice::from_ref(&first)).await;
    let mut transaction = outbox.store.begin().await.unwrap();
    let emitted = transaction.emit(&[text("b").idempotency_key("once")]).await.unwrap();
    assert_eq!(emitted, [Emitted::Duplicate { first: first.id() }]);
    let failing = text("c").idempotency_key("once").on_duplicate(OnDuplicate::Fail);
    assert_eq!(
        transaction.emit(&[failing]).await.unwrap_err().kind(),
        ErrorKind::Duplicate
    );
    let other_topic = Message::bytes("order.paid", "text/plain", "d").idempotency_key("once");
    assert!(!transaction.emit(&[other_topic]).await.unwrap()[0].is_duplicate());
    transaction.commit().await.unwrap();
    assert_eq!(outbox.relay().await.payloads().await, ["a", "d"]);
}

#[tokio::test]
async fn an_idempotency_key_is_taken_for_its_window_and_not_longer() {
    let outbox = TestOutbox::new().await;
    let emit = async |payload: &str| {
        let mut transaction = outbox.store.begin().await.unwrap();
        let emitted = transaction
            .emit(&[text(payload).idempotency_key("once")])
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        emitted[0].is_duplicate()
    };
    assert!(!emit("a").await);
    let window = "SELECT (until - CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) / 1000000
                  FROM outbox_dedup";
    assert!((604_700..=604_800).contains(&outbox.ask::<i64>(window)));
    // Delivering the first changes nothing.
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    relay.settle(&row, &[]).await;
    assert!(emit("b").await);
    outbox.run("UPDATE outbox_dedup SET until = 1; UPDATE outbox_setting SET value = '60'");
    assert!(!emit("c").await);
    assert!((50..=60).contains(&outbox.ask::<i64>(window)));
    assert!(emit("d").await);
    assert_eq!(relay.payloads().await, ["c"]);
}

#[tokio::test]
async fn a_plain_insert_minds_the_idempotency_key_too() {
    let outbox = TestOutbox::new().await;
    let insert = "INSERT INTO outbox_message (topic, payload, idempotency_key) VALUES ('order.placed', 'x', 'once')";
    outbox.run(insert);
    let error = outbox.plain().execute_batch(insert).unwrap_err();
    assert!(error.to_string().contains("was already emitted"), "{error}");
    let mut transaction = outbox.store.begin().await.unwrap();
    assert!(transaction.emit(&[text("b").idempotency_key("once")]).await.unwrap()[0].is_duplicate());
    transaction.commit().await.unwrap();
    outbox.run("UPDATE outbox_dedup SET until = 1");
    outbox.run(insert);
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 2);
}

#[tokio::test]
async fn a_scheduled_message_is_in_one_table_only() {
    let outbox = TestOutbox::new().await;
    let later = Duration::from_secs(60);
    outbox
        .emit(&[
            text("a").delay(later).idempotency_key("once"),
            text("b").delay(Duration::ZERO),
        ])
        .await;
    let all = "SELECT group_concat(CAST(payload AS TEXT) || ':' || coalesce(detail, 'ready')) FROM outbox_all";
    assert_eq!(outbox.ask::<String>(all), "b:ready,a:scheduled");
    let waiting = "SELECT w.lane = m.lane FROM outbox_waiting w, (SELECT lane FROM outbox_message) m";
    outbox.run(
        "INSERT INTO outbox_message (topic, payload, key, available_at) VALUES ('t', 'x', 'k', 9e15);
         DELETE FROM outbox_waiting WHERE key IS NULL; DELETE FROM outbox_message;
         INSERT INTO outbox_message (topic, payload, key) VALUES ('t', 'x', 'k');",
    );
    assert!(
        outbox.ask::<bool>(waiting),
        "a scheduled message has the lane of its key"
    );
}

#[tokio::test]
async fn many_messages_are_written_in_their_order() {
    let outbox = TestOutbox::new().await;
    let messages: Vec<_> = (0..1000).map(|n| text(&n.to_string()).key("k")).collect();
    outbox.emit(&messages).await;
    let payloads = outbox.relay().await.payloads().await;
    assert_eq!(payloads, (0..payloads.len()).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_write_lock_of_another_program_is_waited_for_and_then_named() {
    let outbox = TestOutbox::with(|config| config.busy_timeout(Duration::from_millis(50))).await;
    let other = outbox.plain();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = outbox.store.begin().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Busy);
    other.execute_batch("COMMIT").unwrap();
    outbox.emit(&[text("a")]).await;
}
