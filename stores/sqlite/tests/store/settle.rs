use std::time::Duration;

use sendoff::store::{DeadReason, OperateStore, RelayStore, Status, Verdict};

use crate::outbox::{TestOutbox, dead, down, parked, retry, text};

#[tokio::test]
async fn a_delivered_message_is_gone() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a"), text("b")]).await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    let report = relay.settle(&rows[0], &[]).await;
    assert!(report.lost.is_empty() && report.freed.is_empty() && !report.woke);
    assert_eq!(
        outbox.ask::<String>("SELECT group_concat(CAST(payload AS TEXT)) FROM outbox_all"),
        "b"
    );
    // A second time, as after an answer that was lost: nothing happens.
    relay.settle(&rows[0], &[]).await;
    relay.settle(&rows[0], &[("audit", retry(0))]).await;
    assert_eq!(outbox.ask::<i64>("SELECT count(*) FROM outbox_all"), 1);
    assert!(relay.read().await.is_empty());
}

#[tokio::test]
async fn a_retention_keeps_delivered_messages() {
    let outbox = TestOutbox::with(|config| config.retention(Some(Duration::from_secs(3600)))).await;
    outbox.emit(&[text("a"), text("b")]).await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    let both = [("audit", Verdict::Delivered), ("shop", Verdict::Delivered)];
    relay.settle(&rows[0], &both).await;
    relay
        .settle(&rows[1], &[("audit", retry(0)), ("shop", Verdict::Delivered)])
        .await;
    let waiting = relay.outgoing().await.pop().unwrap();
    relay.settle(&waiting, &[]).await;
    let kept = "SELECT group_concat(CAST(payload AS TEXT) || ':' || sinks || ':' || attempts) FROM outbox_delivered";
    assert_eq!(
        outbox.ask::<String>(kept),
        r#"a:["audit","shop"]:0,b:["shop"]:0,b:["audit"]:1"#
    );
    let seen = "SELECT group_concat(CAST(payload AS TEXT) || ':' || sink || ':' || json_array_length(history))
        FROM (SELECT * FROM outbox_all ORDER BY ended_at, sink)";
    assert_eq!(outbox.ask::<String>(seen), "a:audit:0,a:shop:0,b:shop:0,b:audit:1");
    assert_eq!(
        outbox.store.find(rows[0].id).await.unwrap()[0].status,
        Status::Delivered
    );
}

#[tokio::test]
async fn every_delivery_of_a_ready_row_gets_its_verdict() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a").header("h", "v").max_attempts(3)]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    let deliveries = [
        ("again", retry(100)),
        ("down", down(200)),
        ("parked", parked(300)),
        ("never", dead(false)),
        ("done", Verdict::Delivered),
    ];
    relay.settle(&row, &deliveries).await;
    let found = outbox.store.find(row.id).await.unwrap();
    let show = |sink: &str| {
        let stored = found.iter().find(|stored| stored.sink == sink).unwrap();
        assert_eq!((&stored.payload[..], stored.max_attempts), (&b"a"[..], Some(3)));
        assert_eq!(stored.headers.as_deref(), Some(r#"{"h":"v"}"#));
        (
            stored.status,
            stored.attempts,
            stored.detail.clone().unwrap(),
            stored.last_error.clone().unwrap(),
        )
    };
    let said = |word: &str| format!("the sink {word}");
    assert_eq!(show("again"), (Status::Retry, 1, "retry".into(), said("said no")));
    assert_eq!(show("down"), (Status::Deferred, 0, "deferred".into(), said("is down")));
    assert_eq!(show("parked"), (Status::Retry, 1, "parked".into(), said("said no")));
    assert_eq!(show("never"), (Status::Dead, 1, "permanent".into(), said("said never")));
    assert_eq!(found.len(), 4);
    let due_in = "SELECT (due_at - CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) / 1000000
                  FROM outbox_waiting WHERE sink = 'down'";
    assert!((190..=200).contains(&outbox.ask::<i64>(due_in)));
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 0);
}

#[tokio::test]
async fn attempts_and_history_grow_with_what_is_tried() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    relay.settle(&row, &[("audit", down(0))]).await;
    for verdict in [down(0), down(0), retry(0), retry(0)] {
        let row = relay.outgoing().await.pop().unwrap();
        relay.settle(&row, &[("audit", verdict)]).await;
    }
    let row = relay.outgoing().await.pop().unwrap();
    assert_eq!(row.attempts, 2);
    let stored = outbox.store.find(row.id).await.unwrap().pop().unwrap();
    let history: serde_json::Value = serde_json::from_str(&stored.history.unwrap()).unwrap();
    let errors: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["error"].as_str().unwrap())
        .collect();
    assert_eq!(errors, ["the sink is down", "the sink said no", "the sink said no"]);
    let at = history[0]["at"].as_str().unwrap();
    assert!(
        at.len() == 24 && at.ends_with('Z') && history[0]["sink"] == "audit",
        "{history}"
    );

    relay.settle(&row, &[("audit", dead(false))]).await;
    let stored = outbox.store.find(row.id).await.unwrap().pop().unwrap();
    assert_eq!((stored.status, stored.attempts), (Status::Dead, 3));
    assert!(stored.history.unwrap().contains("the sink said never"));
    assert!(stored.ended_at.is_some());
}

#[tokio::test]
async fn a_history_keeps_the_last_twenty_and_survives_nonsense() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    relay.settle(&row, &[("audit", retry(0))]).await;
    for _ in 0..30 {
        let row = relay.outgoing().await.pop().unwrap();
        relay.settle(&row, &[("audit", retry(0))]).await;
    }
    assert_eq!(
        outbox.ask::<i64>("SELECT json_array_length(history) FROM outbox_waiting"),
        20
    );
    for nonsense in ["{", "{}", "7", ""] {
        outbox.run(&format!("UPDATE outbox_waiting SET history = '{nonsense}'"));
        let row = relay.outgoing().await.pop().unwrap();
        assert!(relay.settle(&row, &[("audit", retry(0))]).await.lost.is_empty());
    }
}

#[tokio::test]
async fn errors_are_kept_within_bounds() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    let verdict = Verdict::Dead {
        reason: DeadReason::Exhausted,
        error: format!("\0{}", "x".repeat(9000)),
        charged: false,
        blocks: false,
    };
    relay.settle(&row, &[("audit", verdict)]).await;
    assert_eq!(
        outbox.ask::<String>("SELECT last_error FROM outbox_dead"),
        "x".repeat(2000)
    );
}

#[tokio::test]
async fn a_scheduled_message_is_routed_when_it_is_due() {
    let outbox = TestOutbox::new().await;
    outbox
        .emit(&[
            text("a").delay(Duration::from_secs(60)),
            text("b").delay(Duration::from_secs(60)),
        ])
        .await;
    outbox.run("UPDATE outbox_waiting SET due_at = 1");
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    relay
        .settle(&rows[0], &[("audit", retry(50)), ("shop", dead(false))])
        .await;
    relay.settle(&rows[1], &[]).await;
    let waiting = "SELECT group_concat(sink || ':' || state || ':' || attempts) FROM outbox_waiting";
    assert_eq!(outbox.ask::<String>(waiting), "audit:retry:1");
    assert_eq!(
        outbox.ask::<String>("SELECT group_concat(sink || ':' || reason) FROM outbox_dead"),
        "shop:permanent"
    );
}

#[tokio::test]
async fn a_settlement_touches_all_of_a_lane_or_nothing_of_it() {
    let outbox = TestOutbox::new().await;
    outbox
        .emit(&[text("a").key("one"), text("b").key("one"), text("c").key("another")])
        .await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    assert_ne!(rows[0].row_ref.lane, rows[2].row_ref.lane, "the test needs two lanes");
    let mut settlements: Vec<_> = rows.iter().map(|row| relay.settlement(row, &[])).collect();
    settlements[1].epoch += 1;
    let report = relay.settle_all(&settlements).await;
    assert_eq!(report.lost, [rows[0].row_ref.lane]);
    assert_eq!(
        outbox.ask::<String>("SELECT group_concat(CAST(payload AS TEXT)) FROM outbox_message"),
        "a,b"
    );
}

#[tokio::test]
async fn two_messages_with_one_number_both_wait_and_both_die() {
    let outbox = TestOutbox::new().await;
    outbox.run("INSERT INTO outbox_message (seq, key, topic, payload) VALUES (5, 'k', 't', 'first')");
    let mut relay = outbox.relay().await;
    let first = relay.outgoing().await.pop().unwrap();
    relay.settle(&first, &[("audit", retry(60))]).await;
    outbox.run("INSERT INTO outbox_message (seq, key, topic, payload) VALUES (5, 'k', 't', 'second')");
    let mut other = {
        outbox.store.deregister(relay.owner).await.unwrap();
        outbox.relay().await
    };
    let second = other.outgoing().await.pop().unwrap();
    other.settle(&second, &[("audit", retry(0))]).await;
    let all = "SELECT group_concat(status || ':' || CAST(payload AS TEXT)) FROM outbox_all";
    assert_eq!(outbox.ask::<String>(all), "retry:first,retry:second");

    // Whatever is settled is one of them.
    let second = other.outgoing().await.pop().unwrap();
    assert_eq!(second.payload, "second");
    other.settle(&second, &[("audit", dead(false))]).await;
    assert_eq!(outbox.ask::<String>(all), "retry:first,dead:second");
    outbox.run("UPDATE outbox_waiting SET due_at = 1");
    let first = other.outgoing().await.pop().unwrap();
    other.settle(&first, &[("audit", dead(false))]).await;
    assert_eq!(outbox.ask::<String>(all), "dead:second,dead:first");
    let one = sendoff::store::Filter {
        ids: vec![first.id],
        ..Default::default()
    };
    let mut by = sendoff::store::Command::by("ops");
    assert_eq!(outbox.store.discard_dead(&one, None, 9, &mut by).await.unwrap(), 1);
    assert_eq!(outbox.ask::<String>(all), "dead:second");
}

#[tokio::test]
async fn a_message_that_dies_again_is_one_dead_letter() {
    let outbox = TestOutbox::new().await;
    let insert = "INSERT INTO outbox_message (seq, id, topic, payload) VALUES (5, 'odd', 't', 'x')";
    for error in ["first", "second"] {
        outbox.run(insert);
        let mut relay = outbox.relay().await;
        let row_ref = relay.read().await[0].row_ref().clone();
        let verdict = Verdict::Dead {
            reason: DeadReason::Unreadable,
            error: error.to_owned(),
            charged: false,
            blocks: false,
        };
        let settlement = relay.settlement_of(&row_ref, None, &[("", verdict)]);
        relay.settle_all(&[settlement]).await;
        outbox.store.deregister(relay.owner).await.unwrap();
        assert_eq!(
            outbox.ask::<String>("SELECT group_concat(last_error) FROM outbox_dead"),
            error
        );
    }
}

#[tokio::test]
async fn another_program_that_holds_the_write_lock_makes_settling_busy_and_not_broken() {
    let outbox = TestOutbox::with(|config| config.busy_timeout(Duration::from_millis(50))).await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    let settlements = [relay.settlement(&row, &[])];
    let other = outbox.plain();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = outbox.store.settle(relay.owner, &settlements).await.unwrap_err();
    assert!(
        error.kind() == sendoff::ErrorKind::Busy && error.is_temporary(),
        "{error}"
    );
    #[cfg(target_os = "linux")]
    assert!(
        error.to_string().contains("this process itself holds the write lock"),
        "{error}"
    );
    other.execute_batch("ROLLBACK").unwrap();
    assert!(relay.settle_all(&settlements).await.lost.is_empty());
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 0);
}
