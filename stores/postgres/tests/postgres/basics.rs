//! The way of a message through the tables.

use std::time::Duration;

use sendoff::store::{DeadReason, RelayStore, RetryState, Verdict};

use crate::scratch::{Scratch, message, topics};

fn retry(delay: Duration) -> Verdict {
    Verdict::Retry {
        state: RetryState::Retry,
        delay,
        charged: true,
        error: "refused".to_owned(),
    }
}

#[tokio::test]
async fn a_message_is_read_once_and_gone_when_it_is_delivered() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a").key("k"), message("b").key("k")]).await;
    let mut relay = scratch.relay().await;
    let found = relay.read().await;
    assert_eq!(topics(&found), ["a", "b"]);
    assert_eq!(found[0].payload.as_ref(), b"a");
    assert!(relay.read().await.is_empty(), "what is in flight is not returned again");
    let report = relay.deliver(&found).await;
    assert_eq!(report, Default::default());
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "0");
    assert!(relay.read().await.is_empty());
}

#[tokio::test]
async fn a_failed_message_waits_comes_back_and_dies_with_its_history() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a").key("k")]).await;
    let mut relay = scratch.relay().await;
    let found = relay.read().await;
    let report = relay.settle(&found[0], &[("shop", retry(Duration::ZERO))]).await;
    assert!(report.woke, "it is due at once");
    let again = relay.next().await;
    assert_eq!((again[0].attempts, again[0].row_ref.sink.as_deref()), (1, Some("shop")));
    let dead = Verdict::Dead {
        reason: DeadReason::Exhausted,
        error: "gave up".to_owned(),
        charged: true,
        blocks: true,
    };
    relay.settle(&again[0], &[("shop", dead)]).await;
    let row = "SELECT concat_ws(' ', attempts, reason, last_error, blocks, jsonb_array_length(history), history -> 1 ->> 'error') FROM outbox_dead";
    assert_eq!(scratch.value(row).await, "2 exhausted gave up t 2 gave up");
    let blocked = scratch.store.blocked_keys(&[found[0].row_ref.lane]).await.unwrap();
    assert_eq!((blocked.len(), &*blocked[0].key, &*blocked[0].sink), (1, "k", "shop"));
    let backlog = scratch.store.backlog().await.unwrap();
    assert_eq!(
        (backlog.ready, backlog.due, backlog.waiting, backlog.dead),
        (0, 0, 0, 1)
    );
}

/// Relays look in lanes 0 to 79, behind number 0. A row elsewhere is only written past the trigger.
#[tokio::test]
async fn a_row_where_no_relay_reads_is_told_and_can_be_emitted_once_more() {
    let scratch = Scratch::new().await;
    let once = message("moved").idempotency_key("once");
    scratch.emit(&[message("fine"), once]).await;
    let health = scratch.store.health().await.unwrap().unwrap();
    assert_eq!(health.stray, None);
    for (lane, seq) in [(99, 5), (-7, 5), (80, 1), (3, 0), (3, -4)] {
        scratch
            .run(&format!(
                "UPDATE outbox_message SET lane = {lane}, seq = {seq}, created_at = now() - interval '1 hour' WHERE topic = 'moved'"
            ))
            .await;
        let health = scratch.store.health().await.unwrap().unwrap();
        let stray = health.stray.expect("it is found");
        assert_eq!((stray.lane, stray.seq, health.heads.len()), (lane, seq, 1));
        assert!(health.oldest_ready().unwrap() > Duration::from_secs(3000), "{health:?}");
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/watch.md")).unwrap();
    let remedy = page.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    scratch.run(remedy).await;
    assert_eq!(scratch.store.health().await.unwrap().unwrap().stray, None);
    let mut relay = scratch.relay().await;
    let rows = relay.read().await;
    let mut topics = topics(&rows);
    topics.sort_unstable();
    assert_eq!(topics, ["fine", "moved"]);
}

#[tokio::test]
async fn nothing_waits_or_is_dead_where_no_relay_reads() {
    let scratch = Scratch::new().await;
    for (table, column, word) in [("waiting", "state", "parked"), ("dead", "reason", "expired")] {
        let insert = |lane: i32, seq: i32| {
            scratch.names.render(&format!(
                "INSERT INTO outbox_{table} (lane, seq, id, {column}, topic, payload)
                 VALUES ({lane}, {seq}, gen_random_uuid(), '{word}', 't', '')"
            ))
        };
        for (lane, seq) in [(99, 1), (80, 1), (-7, 1), (3, 0)] {
            let refused = scratch.sql.batch_execute(&insert(lane, seq)).await;
            let code = refused.expect_err("it is refused").code().cloned();
            assert_eq!(code, Some(tokio_postgres::error::SqlState::CHECK_VIOLATION));
        }
        scratch.sql.batch_execute(&insert(79, 1)).await.unwrap();
    }
}
