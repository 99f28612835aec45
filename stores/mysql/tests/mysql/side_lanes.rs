//! What a plain INSERT leaves in the lanes that no relay leases.

use sendoff::store::{Filter, OperateStore, RelayStore, Status};

use crate::scratch::{Scratch, topics};

const INSERT: &str = "INSERT INTO outbox_message (topic, payload, available_at) VALUES";

#[tokio::test]
async fn a_message_inserted_for_later_is_shown_at_once_and_comes_in_time() {
    let scratch = Scratch::new().await;
    scratch
        .run(&format!(
            "{INSERT} ('later', 'x', UTC_TIMESTAMP(6) + INTERVAL 400000 MICROSECOND)"
        ))
        .await;
    scratch
        .run(&format!(
            "{INSERT} ('much later', 'x', UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)"
        ))
        .await;
    scratch.run(&format!("{INSERT} ('past', 'x', '2020-01-01')")).await;
    let backlog = scratch.store.backlog().await.unwrap();
    assert_eq!((backlog.ready, backlog.waiting), (1, 2), "{backlog:?}");
    let listed = scratch.store.list(&Filter::default(), 10).await.unwrap().messages;
    let shown: Vec<_> = listed
        .iter()
        .map(|m| (m.status, m.topic.as_str(), m.detail.as_deref(), m.due_at.is_some()))
        .collect();
    let scheduled = |topic| (Status::Scheduled, topic, Some("scheduled"), true);
    assert_eq!(
        shown,
        [
            scheduled("later"),
            scheduled("much later"),
            (Status::Pending, "past", None, false)
        ]
    );
    let mut relay = scratch.relay().await;
    assert_eq!(topics(&relay.read(1).await), ["past"]);
    assert_eq!(topics(&relay.read(1).await), ["later"]);
    assert_eq!(
        scratch
            .value("SELECT count(*) FROM outbox_message WHERE lane >= 80")
            .await,
        "0"
    );
    let state = "SELECT CONCAT(state, ' ', lane < 80) FROM outbox_waiting WHERE topic = 'much later'";
    assert_eq!(scratch.value(state).await, "scheduled 1");
}

#[tokio::test]
async fn what_was_written_before_is_neither_shown_nor_sent_and_goes() {
    let scratch = Scratch::new().await;
    let insert = "INSERT INTO outbox_message (id, topic, payload, idempotency_key) \
        VALUES ('00000000-0000-7000-8000-000000000001', 't', 'x', 'k')";
    for _ in 0..3 {
        scratch.run(insert).await;
    }
    assert_eq!(scratch.store.backlog().await.unwrap().ready, 1);
    assert_eq!(scratch.store.count(&Filter::default()).await.unwrap(), 1);
    let mut relay = scratch.relay().await;
    assert_eq!(relay.read(1).await.len(), 1);
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "1");
}

#[tokio::test]
async fn an_id_and_a_lane_are_given_to_whoever_leaves_them_out() {
    let scratch = Scratch::new().await;
    scratch
        .run("INSERT INTO outbox_message (lane, topic, payload, `key`) VALUES (7, 'a', 'x', 'k'), (9, 'b', 'x', 'k')")
        .await;
    let mut relay = scratch.relay().await;
    let read = relay.read(2).await;
    assert_eq!(topics(&read), ["a", "b"]);
    assert_eq!(
        read[0].row_ref.lane, read[1].row_ref.lane,
        "what a producer writes there is not kept"
    );
    assert_ne!(read[0].id, read[1].id);
    for outgoing in &read {
        assert_eq!(outgoing.id.get_version_num(), 7);
        let age = outgoing.created_at.elapsed().unwrap();
        assert!(age.as_secs() < 60, "{age:?}");
    }
}

#[tokio::test]
async fn the_procedure_emits_for_every_language() {
    let scratch = Scratch::new().await;
    let nulls = "NULL, NULL, NULL, NULL, NULL";
    let call = format!("CALL outbox_emit('t', '{{}}', NULL, {nulls}, NULL, 'k', NULL, NULL, NULL, NULL)");
    let first = scratch.value(&call).await;
    assert_eq!(scratch.value(&call).await, first, "the second one names the first");
    let later = "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR";
    scratch
        .run(&format!(
            "CALL outbox_emit('later', '{{}}', NULL, {nulls}, NULL, NULL, {later}, NULL, 3, 5)"
        ))
        .await;
    let backlog = scratch.store.backlog().await.unwrap();
    assert_eq!((backlog.ready, backlog.waiting), (1, 1));
    assert_eq!(scratch.relay().await.read(1).await[0].id.to_string(), first);
}
