//! Dead letters and waiting messages are made due, or discarded.

use std::time::Duration;

use sendoff::store::{Command, Filter, OperateStore, RelayStore, RetryOptions, Status};

use crate::operate::filter;
use crate::outbox::{TestOutbox, dead, keyed, retry, text};

#[tokio::test]
async fn dead_letters_come_back_in_order_with_no_attempts_charged() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&keyed("k", &["1", "2", "3"])).await;
    let mut relay = outbox.relay().await;
    for row in relay.outgoing().await {
        relay.settle(&row, &[("audit", dead(false))]).await;
    }
    let some = filter(|f| f.topic = Some("nothing.*".to_owned()));
    assert_eq!(
        outbox
            .store
            .retry_dead(&some, None, usize::MAX, &mut Command::by("ann"))
            .await
            .unwrap(),
        0
    );
    let other = filter(|f| f.status = Some(Status::Retry));
    assert_eq!(
        outbox
            .store
            .retry_dead(&other, None, usize::MAX, &mut Command::by("ann"))
            .await
            .unwrap(),
        0
    );
    let all = filter(|f| f.status = Some(Status::Dead));
    assert_eq!(
        outbox
            .store
            .retry_dead(&all, None, usize::MAX, &mut Command::by("ann"))
            .await
            .unwrap(),
        3
    );
    let rows = relay.outgoing().await;
    assert_eq!(
        rows.iter().map(|row| &row.payload[..]).collect::<Vec<_>>(),
        [b"1", b"2", b"3"]
    );
    assert!(
        rows.iter()
            .all(|row| row.attempts == 0 && row.row_ref.sink.as_deref() == Some("audit"))
    );
    let stored = outbox.store.find(rows[0].id).await.unwrap().pop().unwrap();
    assert!(
        stored.history.unwrap().contains("said never"),
        "what was tried before stays known"
    );
    let audit = "SELECT group_concat(who || ':' || action || ':' || affected) FROM outbox_audit";
    assert_eq!(
        outbox.ask::<String>(audit),
        "ann:dead retry:0,ann:dead retry:0,ann:dead retry:3"
    );
    assert_eq!(
        outbox.ask::<String>("SELECT filter FROM outbox_audit WHERE affected = 3"),
        r#"{"status":"dead"}"#
    );
}

#[tokio::test]
async fn a_dead_letter_that_waits_already_stays_where_it_is() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a"), text("b")]).await;
    let mut relay = outbox.relay().await;
    for row in relay.outgoing().await {
        relay.settle(&row, &[("audit", dead(false))]).await;
    }
    outbox.run(
        "INSERT INTO outbox_waiting (lane, seq, id, sink, state, topic, payload)
         SELECT lane, seq, id, sink, 'retry', topic, 'the same' FROM outbox_dead WHERE seq = 1;
         INSERT INTO outbox_waiting (lane, seq, id, sink, state, topic, payload)
         SELECT lane, seq, 'another', sink, 'retry', topic, 'another of this number' FROM outbox_dead WHERE seq = 2",
    );
    assert_eq!(
        outbox
            .store
            .retry_dead(&Filter::default(), None, usize::MAX, &mut Command::by("ann"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        outbox.ask::<String>("SELECT CAST(payload AS TEXT) FROM outbox_dead"),
        "a"
    );
}

#[tokio::test]
async fn messages_with_one_number_become_due_page_by_page_each_once() {
    let outbox = TestOutbox::new().await;
    let insert = "INSERT INTO outbox_waiting (lane, seq, id, sink, state, due_at, attempts, topic, payload)
        VALUES (3, 7, CAST(?1 AS TEXT), ?2, 'retry', 9000000000000000, 1, 't', 'x')";
    let ids: [&[u8]; 5] = [b"0188d3b4-0000-7000-8000-00000000000a", b"A", b"", b"z", b"\xff"];
    for id in ids {
        for sink in ["", "audit"] {
            outbox.plain().execute(insert, rusqlite::params![id, sink]).unwrap();
        }
    }
    let (mut after, mut due) = (None, 0);
    let mut by = Command::by("ann");
    loop {
        let how = RetryOptions {
            reset: false,
            scheduled: false,
        };
        let all = Filter::default();
        let done = outbox
            .store
            .retry_waiting(&all, how, after.as_ref(), 3, &mut by)
            .await
            .unwrap();
        due += done.due;
        after = done.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(due, 10);
    assert_eq!(
        outbox.ask::<i64>("SELECT count(*) FROM outbox_waiting WHERE due_at = 9000000000000000"),
        0
    );
}

/// The payloads of the waiting rows that are due now, and those that are not, in the order of their numbers.
pub(crate) fn due_and_not(outbox: &TestOutbox) -> (String, String) {
    let of = |condition: &str| {
        outbox.ask::<String>(&format!(
            "SELECT coalesce(group_concat(CAST(payload AS TEXT)), '') FROM (SELECT * FROM outbox_waiting ORDER BY seq)
             WHERE {condition}"
        ))
    };
    let now = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)";
    (
        of(&format!("due_at <= {now}")),
        of(&format!("due_at IS NULL OR due_at > {now}")),
    )
}

pub(crate) fn actions(outbox: &TestOutbox) -> String {
    outbox.ask("SELECT group_concat(who || ' ' || action || ' ' || affected) FROM outbox_audit")
}

#[tokio::test]
async fn a_limit_takes_the_oldest_dead_letters_and_passes_over_those_that_cannot_go() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("1"), text("2"), text("3")]).await;
    let mut relay = outbox.relay().await;
    for row in relay.outgoing().await {
        relay.settle(&row, &[("audit", dead(false))]).await;
    }
    outbox.run(
        "INSERT INTO outbox_waiting (lane, seq, id, sink, state, topic, payload)
         SELECT lane, seq, id, sink, 'retry', topic, 'the same' FROM outbox_dead WHERE seq = 1",
    );
    assert_eq!(
        outbox
            .store
            .retry_dead(&Filter::default(), None, 1, &mut Command::by("ann"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(due_and_not(&outbox).0, "2");
    assert_eq!(
        outbox
            .store
            .retry_dead(&Filter::default(), None, 0, &mut Command::by("ann"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        outbox
            .store
            .retry_dead(&Filter::default(), None, 9, &mut Command::by("ann"))
            .await
            .unwrap(),
        1
    );
}

#[tokio::test]
async fn waiting_messages_are_made_due_and_held_ones_are_not() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&keyed("k", &["1", "2"])).await;
    outbox
        .emit(&[text("3"), text("4").delay(Duration::from_secs(60))])
        .await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    relay.settle(&rows[0], &[("audit", retry(60))]).await;
    relay
        .settle(&rows[1], &[("audit", sendoff::store::Verdict::Blocked)])
        .await;
    relay.settle(&rows[2], &[("audit", retry(60))]).await;
    assert_eq!(due_and_not(&outbox), (String::new(), "1,2,3,4".to_owned()));

    let retry_waiting = async |filter: Filter, reset, scheduled, limit| {
        let how = RetryOptions { reset, scheduled };
        let by = &mut Command::by("ann");
        let retried = outbox.store.retry_waiting(&filter, how, None, limit, by).await.unwrap();
        (retried.due, retried.next.map(|row_ref| row_ref.seq))
    };
    let scheduled = || filter(|f| f.status = Some(Status::Scheduled));
    assert_eq!(
        retry_waiting(filter(|f| f.status = Some(Status::Dead)), true, true, 9).await,
        (0, None)
    );
    assert_eq!(retry_waiting(scheduled(), false, false, 9).await, (0, None));
    assert_eq!(retry_waiting(scheduled(), false, true, 9).await, (1, None));
    assert_eq!(due_and_not(&outbox).0, "4");
    assert_eq!(retry_waiting(Filter::default(), false, false, 1).await.0, 1);
    assert_eq!(outbox.ask::<i64>("SELECT max(attempts) FROM outbox_waiting"), 1);
    assert_eq!(
        retry_waiting(Filter::default(), true, false, 9).await,
        (2, None),
        "one becomes due, both forget their attempts"
    );
    assert_eq!(due_and_not(&outbox), ("1,3,4".to_owned(), "2".to_owned()));
    assert_eq!(outbox.ask::<i64>("SELECT max(attempts) FROM outbox_waiting"), 0);
    assert_eq!(retry_waiting(Filter::default(), true, false, 9).await, (0, None));
    let done = actions(&outbox);
    assert!(
        done.starts_with("ann retry --reset 0,ann retry 0,ann retry 1,ann retry 1,ann retry --reset 2"),
        "{done}"
    );
}

#[tokio::test]
async fn discarding_a_dead_letter_lets_its_followers_go() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&keyed("k", &["1", "2", "3"])).await;
    outbox.emit(&[text("other")]).await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    relay.settle(&rows[0], &[("audit", dead(true))]).await;
    for row in &rows[1..3] {
        relay.settle(row, &[("audit", sendoff::store::Verdict::Blocked)]).await;
    }
    relay.settle(&rows[3], &[("audit", dead(false))]).await;
    let other = filter(|f| f.payload = Some("other".to_owned()));
    assert_eq!(
        outbox
            .store
            .discard_dead(&other, None, 9, &mut Command::by("ann"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(due_and_not(&outbox), (String::new(), "2,3".to_owned()));
    assert_eq!(
        outbox
            .store
            .discard_dead(&Filter::default(), None, 0, &mut Command::by("ann"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        outbox
            .store
            .discard_dead(&Filter::default(), None, 9, &mut Command::by("ann"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(due_and_not(&outbox), ("2,3".to_owned(), String::new()));
    assert_eq!(outbox.store.backlog().await.unwrap().dead, 0);
    assert_eq!(
        actions(&outbox),
        "ann dead discard 1,ann dead discard 0,ann dead discard 1"
    );
}
