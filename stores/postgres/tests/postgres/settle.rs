//! What becomes of rows: the table of verdicts, and the followers of a key.

use std::sync::Arc;
use std::time::Duration;

use sendoff::Message;
use sendoff::store::{
    BlockedKey, Command, DeadReason, OperateStore, Outgoing, RelayStore, RetryState, Row, Settlement, Verdict,
};

use crate::scratch::{Relay, Scratch, connect, message, topics};

const HOUR: Duration = Duration::from_secs(3600);

fn retry(state: RetryState, delay: Duration) -> Verdict {
    Verdict::Retry {
        state,
        delay,
        charged: true,
        error: "refused".to_owned(),
    }
}

fn dead(blocks: bool) -> Verdict {
    Verdict::Dead {
        reason: DeadReason::Permanent,
        error: "never".to_owned(),
        charged: false,
        blocks,
    }
}

/// The waiting rows of the key `k` in order: topic, delivery, state, whether it has a time.
async fn waiting(scratch: &Scratch) -> String {
    scratch
        .value(
            "SELECT string_agg(concat_ws(' ', topic, sink, state, CASE WHEN due_at IS NULL THEN '-' WHEN due_at > now()
                THEN 'later' ELSE 'now' END), ', ' ORDER BY seq, sink) FROM outbox_waiting",
        )
        .await
}

/// Messages 1 to `count` of the key `k`, the first of which failed and the others of which are held.
async fn blocked_key(scratch: &Scratch, relay: &mut Relay, count: usize) {
    let messages: Vec<_> = (1..=count).map(|n| message(&n.to_string()).key("k")).collect();
    scratch.emit(&messages).await;
    let found = relay.next().await;
    let mut settlements = vec![relay.settlement(&found[0], &[("s", retry(RetryState::Retry, Duration::ZERO))])];
    settlements.extend(
        found[1..]
            .iter()
            .map(|outgoing| relay.settlement(outgoing, &[("s", Verdict::Blocked)])),
    );
    relay.settle_all(&settlements).await;
}

fn key_of(outgoing: &Outgoing) -> BlockedKey {
    BlockedKey {
        lane: outgoing.row_ref.lane,
        key: Arc::from("k"),
        sink: Arc::from("s"),
    }
}

#[tokio::test]
async fn followers_are_held_until_the_head_is_delivered_and_then_come_in_order() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    blocked_key(&scratch, &mut relay, 4).await;
    assert_eq!(
        waiting(&scratch).await,
        "1 s retry now, 2 s blocked -, 3 s blocked -, 4 s blocked -"
    );
    let head = relay.next().await;
    assert_eq!(topics(&head), ["1"]);
    let report = relay.deliver(&head).await;
    assert!(report.woke && report.freed.is_empty());
    let followers = relay.next().await;
    assert_eq!(topics(&followers), ["2", "3", "4"]);
    let report = relay.deliver(&followers).await;
    assert_eq!(report.freed, [key_of(&head[0])]);
    assert!(!report.woke);
    assert_eq!(scratch.store.blocked_keys(&[head[0].row_ref.lane]).await.unwrap(), []);
}

#[tokio::test]
async fn a_follower_that_fails_holds_back_those_behind_it() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    blocked_key(&scratch, &mut relay, 4).await;
    let head = relay.next().await;
    relay.deliver(&head).await;
    let followers = relay.next().await;
    let settlements = [
        relay.settlement(&followers[0], &[]),
        relay.settlement(&followers[1], &[("s", retry(RetryState::Deferred, HOUR))]),
    ];
    let report = relay.settle_all(&settlements).await;
    assert!(report.freed.is_empty() && !report.woke);
    assert_eq!(waiting(&scratch).await, "3 s deferred later, 4 s blocked -");
}

#[tokio::test]
async fn a_parked_row_lets_its_followers_go() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    blocked_key(&scratch, &mut relay, 2).await;
    let head = relay.next().await;
    let report = relay.settle(&head[0], &[("s", retry(RetryState::Parked, HOUR))]).await;
    assert!(report.woke && report.freed.is_empty());
    assert_eq!(waiting(&scratch).await, "1 s parked later, 2 s blocked now");
    let follower = relay.next().await;
    assert_eq!(
        relay.deliver(&follower).await.freed,
        [key_of(&head[0])],
        "a parked row does not block"
    );
}

#[tokio::test]
async fn a_dead_letter_blocks_or_does_not_as_it_was_told() {
    for blocks in [true, false] {
        let scratch = Scratch::new().await;
        let mut relay = scratch.relay().await;
        blocked_key(&scratch, &mut relay, 2).await;
        let head = relay.next().await;
        let report = relay.settle(&head[0], &[("s", dead(blocks))]).await;
        assert_eq!(report.woke, !blocks);
        let expected = if blocks { "2 s blocked -" } else { "2 s blocked now" };
        assert_eq!(waiting(&scratch).await, expected);
        assert_eq!(
            scratch
                .store
                .release_orphans(relay.owner, &[head[0].row_ref.lane])
                .await
                .unwrap(),
            0
        );
    }
}

#[tokio::test]
async fn a_follower_is_due_at_once_when_what_it_was_held_for_is_gone() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    scratch.emit(&[message("1").key("k")]).await;
    let found = relay.next().await;
    let report = relay.settle(&found[0], &[("s", Verdict::Blocked)]).await;
    assert!(report.woke);
    assert_eq!(waiting(&scratch).await, "1 s blocked now");
}

#[tokio::test]
async fn an_earlier_message_is_not_held_behind_a_later_one_that_is_due() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    scratch.emit(&[message("1").key("k"), message("2").key("k")]).await;
    let found = relay.next().await;
    relay.settle(&found[1], &[("s", Verdict::Blocked)]).await;
    relay.settle(&found[0], &[("s", Verdict::Blocked)]).await;
    assert_eq!(waiting(&scratch).await, "1 s blocked now, 2 s blocked now");
}

#[tokio::test]
async fn orphans_are_let_go() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    blocked_key(&scratch, &mut relay, 3).await;
    let lanes: Vec<u16> = (0..80).collect();
    assert_eq!(scratch.store.release_orphans(relay.owner, &lanes).await.unwrap(), 0);
    scratch.run("DELETE FROM outbox_waiting WHERE state = 'retry'").await;
    assert_eq!(
        scratch
            .store
            .release_orphans(sendoff::store::OwnerId::random(), &lanes)
            .await
            .unwrap(),
        0
    );
    assert_eq!(scratch.store.release_orphans(relay.owner, &lanes).await.unwrap(), 2);
    assert_eq!(waiting(&scratch).await, "2 s blocked now, 3 s blocked now");
}

#[tokio::test]
async fn a_message_with_several_deliveries_becomes_a_row_for_each_that_is_not_delivered() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    scratch.emit(&[message("1").key("k")]).await;
    let found = relay.next().await;
    let deliveries = [
        ("a", Verdict::Delivered),
        ("b", retry(RetryState::Retry, HOUR)),
        ("c", dead(false)),
        ("d", Verdict::Blocked),
    ];
    relay.settle(&found[0], &deliveries).await;
    assert_eq!(waiting(&scratch).await, "1 b retry later, 1 d blocked now");
    assert_eq!(scratch.value("SELECT sink FROM outbox_dead").await, "c");
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "0");
}

#[tokio::test]
async fn a_row_without_a_delivery_falls_into_its_deliveries_and_lets_all_of_them_go_on() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    // A dead letter that was never routed, retried by an operator, in front of held rows of two deliveries.
    scratch
        .emit(&[message("1").key("k"), message("2").key("k"), message("3").key("k")])
        .await;
    let found = relay.next().await;
    let unroutable = Verdict::Dead {
        reason: DeadReason::Unroutable,
        error: "no route".to_owned(),
        charged: false,
        blocks: true,
    };
    relay.settle(&found[0], &[("", unroutable)]).await;
    relay
        .settle(&found[1], &[("a", Verdict::Blocked), ("b", Verdict::Blocked)])
        .await;
    relay.settle(&found[2], &[("b", Verdict::Blocked)]).await;
    assert_eq!(waiting(&scratch).await, "2 a blocked -, 2 b blocked -, 3 b blocked -");
    assert_eq!(
        scratch
            .store
            .retry_dead(&Default::default(), None, usize::MAX, &mut Command::by("test"))
            .await
            .unwrap(),
        1
    );
    let head = relay.next().await;
    assert_eq!((topics(&head), &head[0].row_ref.sink), (vec!["1"], &None));
    let report = relay.settle(&head[0], &[("b", retry(RetryState::Retry, HOUR))]).await;
    assert!(report.woke);
    assert_eq!(
        waiting(&scratch).await,
        "1 b retry later, 2 a blocked now, 2 b blocked -, 3 b blocked -"
    );
    let freed: Vec<_> = report.freed.iter().map(|freed| &*freed.sink).collect();
    assert_eq!(freed, [""]);
}

#[tokio::test]
async fn an_unreadable_row_dies_as_it_is() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    scratch
        .run("INSERT INTO outbox_message (topic, payload, headers) VALUES ('', '\\x00ff', '[1]')")
        .await;
    let page = relay.page().await;
    let Row::Unreadable { row_ref, why } = &page.rows[0] else {
        panic!("{page:?}")
    };
    let verdict = Verdict::Dead {
        reason: DeadReason::Unreadable,
        error: why.clone(),
        charged: false,
        blocks: false,
    };
    let settlement = Settlement {
        row_ref: row_ref.clone(),
        epoch: relay.epoch(row_ref.lane),
        deliveries: vec![sendoff::store::DeliverySettlement {
            sink: Arc::from(""),
            verdict,
        }],
        key: None,
        attempts: 0,
    };
    relay.settle_all(&[settlement]).await;
    let row = "SELECT concat_ws(' ', reason, payload, headers, attempts) FROM outbox_dead";
    assert_eq!(scratch.value(row).await, "unreadable \\x00ff [1] 0");
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "0");
}

#[tokio::test]
async fn a_lane_that_is_lost_does_not_keep_the_others_from_being_settled() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    let messages: Vec<_> = (0..40).map(|n| message("m").key(n)).collect();
    scratch.emit(&messages).await;
    let found = relay.next().await;
    let lost = found[0].row_ref.lane;
    scratch
        .run(&format!("UPDATE outbox_lane SET epoch = epoch + 1 WHERE lane = {lost}"))
        .await;
    let mut settlements: Vec<_> = found.iter().map(|outgoing| relay.settlement(outgoing, &[])).collect();
    settlements[1].deliveries = vec![sendoff::store::DeliverySettlement {
        sink: Arc::from("s"),
        verdict: retry(RetryState::Retry, HOUR),
    }];
    let report = relay.settle_all(&settlements).await;
    assert_eq!(report.lost, [lost]);
    let left = scratch
        .value("SELECT string_agg(DISTINCT lane::text, ',') FROM outbox_message")
        .await;
    assert_eq!(left, lost.to_string());
}

#[tokio::test]
async fn delivered_messages_are_kept_when_a_retention_is_set() {
    let scratch = Scratch::with(|config| config.retention(Some(HOUR))).await;
    let mut relay = scratch.relay().await;
    scratch.emit(&[message("at once"), message("later").key("k")]).await;
    let found = relay.next().await;
    let (later, at_once): (Vec<_>, Vec<_>) = found.into_iter().partition(|outgoing| outgoing.topic == "later");
    let both = [("s", Verdict::Delivered), ("t", Verdict::Delivered)];
    relay.settle(&at_once[0], &both).await;
    relay
        .settle(&later[0], &[("s", retry(RetryState::Retry, Duration::ZERO))])
        .await;
    let again = relay.next().await;
    relay.deliver(&again).await;
    let kept =
        "SELECT string_agg(concat_ws(' ', topic, sinks, attempts), ', ' ORDER BY delivered_at) FROM outbox_delivered";
    assert_eq!(scratch.value(kept).await, r#"at once ["s", "t"] 0, later ["s"] 1"#);
    assert_eq!(scratch.store.summary().await.unwrap().delivered, 3, "deliveries");
    let kept =
        "SELECT string_agg(concat_ws(' ', topic, sink, jsonb_array_length(history)), ', ' ORDER BY ended_at, sink)
        FROM outbox_all";
    assert_eq!(scratch.value(kept).await, "at once s 0, at once t 0, later s 1");
}

#[tokio::test]
async fn history_keeps_the_last_twenty_and_an_uncharged_repeat_adds_nothing() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    scratch.emit(&[Message::bytes("1", "x/y", vec![])]).await;
    let mut found = relay.next().await;
    for n in 0..25 {
        let verdict = Verdict::Retry {
            state: RetryState::Retry,
            delay: Duration::ZERO,
            charged: n < 23,
            error: format!("error {}\0", n.min(22)),
        };
        relay.settle(&found[0], &[("s", verdict)]).await;
        found = relay.next().await;
    }
    let row = "SELECT concat_ws(' ', attempts, jsonb_array_length(history), history -> 0 ->> 'error',
        history -> 19 ->> 'error', history -> 19 ->> 'sink', last_error) FROM outbox_waiting";
    assert_eq!(scratch.value(row).await, "23 20 error 3 error 22 s error 22");
    let at = scratch.value("SELECT history -> 0 ->> 'at' FROM outbox_waiting").await;
    assert!(at.ends_with('Z') && at.contains('T'), "{at}");
}

#[tokio::test]
async fn rows_that_a_rewrite_of_the_table_has_moved_are_settled() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    scratch
        .emit(&["a", "b", "c"].map(|topic| message(topic).key("k")))
        .await;
    let found = relay.next().await;
    assert_eq!(topics(&found), ["a", "b", "c"]);
    // What was in front of the others goes, and they move up.
    let before = scratch.value("SELECT max(ctid)::text FROM outbox_message").await;
    scratch.run("DELETE FROM outbox_message WHERE topic = 'a'").await;
    // A snapshot of somebody else in this database keeps what was deleted, and everything in its place.
    let mut after = before.clone();
    for _ in 0..300 {
        scratch.run("VACUUM FULL outbox_message").await;
        after = scratch.value("SELECT max(ctid)::text FROM outbox_message").await;
        if before != after {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_ne!(before, after, "they have moved");
    relay.deliver(&found[2..]).await;
    assert_eq!(
        scratch.value("SELECT string_agg(topic, ' ') FROM outbox_message").await,
        "b"
    );
}

#[tokio::test]
async fn a_row_in_the_place_of_one_that_is_gone_stays() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    scratch.emit(&[message("old").key("k")]).await;
    let found = relay.next().await;
    let row_ref = scratch.value("SELECT ctid::text FROM outbox_message").await;
    scratch.run("DELETE FROM outbox_message").await;
    // As long as an older snapshot may see the row, its place is not given away.
    while scratch.value("SELECT pg_relation_size('outbox_message')::text").await != "0" {
        scratch.run("VACUUM FULL outbox_message").await;
    }
    scratch.emit(&[message("new").key("k")]).await;
    assert_eq!(scratch.value("SELECT ctid::text FROM outbox_message").await, row_ref);
    relay.deliver(&found).await;
    assert_eq!(scratch.value("SELECT topic FROM outbox_message").await, "new");
}

#[tokio::test]
async fn many_rows_are_settled_at_once_though_the_planner_takes_the_table_for_empty() {
    let scratch = Scratch::new().await;
    let fill = |count: u32| {
        format!("INSERT INTO outbox_message (topic, payload) SELECT 't', '' FROM generate_series(1, {count})")
    };
    scratch
        .run("ALTER TABLE outbox_message SET (autovacuum_enabled = off)")
        .await;
    scratch.run(&fill(60_000)).await;
    // Somebody still sees them, so they stay in the index.
    let holder = connect().await;
    let hold = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox_message";
    holder.batch_execute(&scratch.names.render(hold)).await.unwrap();
    scratch.run("DELETE FROM outbox_message").await;
    scratch.run("ANALYZE outbox_message").await;
    scratch.run(&fill(20_000)).await;
    let mut relay = scratch.relay().await;
    let mut all = Vec::new();
    while all.len() < 20_000 {
        all.extend(relay.next().await);
    }
    relay.deliver(&all).await;
    assert_eq!(scratch.value("SELECT count(*)::text FROM outbox_message").await, "0");
}
