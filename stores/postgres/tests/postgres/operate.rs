//! What an operator sees and does.

use std::time::Duration;

use sendoff::Message;
use sendoff::store::{Command, DeadReason, Filter, OperateStore, RetryState, Status, Verdict};

use crate::scratch::{Relay, Scratch, message, topics};

async fn kill(relay: &mut Relay, blocks: bool) {
    for outgoing in relay.next().await {
        let verdict = Verdict::Dead {
            reason: DeadReason::Exhausted,
            error: format!("{} went wrong", outgoing.topic),
            charged: true,
            blocks,
        };
        relay.settle(&outgoing, &[("s", verdict)]).await;
    }
}

#[tokio::test]
async fn filters_find_what_they_say() {
    let scratch = Scratch::new().await;
    scratch
        .emit(&[
            message("order.placed").key("a"),
            message("order_placed").key("b"),
            Message::json("invoice.sent", &"needle")
                .unwrap()
                .idempotency_key("once"),
        ])
        .await;
    let listed = async |filter: Filter| -> Vec<String> {
        let listing = scratch.store.list(&filter, 10).await.unwrap();
        listing.messages.into_iter().map(|stored| stored.topic).collect()
    };
    let topic = |topic: &str| Filter {
        topic: Some(topic.to_owned()),
        ..Filter::default()
    };
    assert_eq!(
        listed(Filter::default()).await,
        ["order.placed", "order_placed", "invoice.sent"]
    );
    assert_eq!(listed(topic("order.*")).await, ["order.placed"]);
    assert_eq!(listed(topic("order_*")).await, ["order_placed"]);
    assert_eq!(listed(topic("*placed")).await.len(), 2);
    let payload = Filter {
        payload: Some("eedl".to_owned()),
        ..Filter::default()
    };
    assert_eq!(listed(payload).await, ["invoice.sent"]);
    let key = Filter {
        key: Some("b".to_owned()),
        status: Some(Status::Pending),
        ..Filter::default()
    };
    assert_eq!(listed(key).await, ["order_placed"]);
    let page = scratch.store.list(&Filter::default(), 2).await.unwrap();
    assert!(page.more && page.messages.len() == 2);
    let page = scratch.store.list(&Filter::default(), 3).await.unwrap();
    assert!(!page.more && page.messages.len() == 3);
}

#[tokio::test]
async fn a_message_is_found_with_all_its_deliveries_and_what_was_tried() {
    let scratch = Scratch::new().await;
    let message = message("a").header("tenant", "acme");
    let id = message.id();
    scratch.emit(&[message]).await;
    assert_eq!(scratch.store.find(id).await.unwrap()[0].status, Status::Pending);
    let mut relay = scratch.relay().await;
    let found = relay.next().await;
    let retry = Verdict::Retry {
        state: RetryState::Retry,
        delay: Duration::from_secs(60),
        charged: true,
        error: "refused".to_owned(),
    };
    let dead = Verdict::Dead {
        reason: DeadReason::Permanent,
        error: "never".to_owned(),
        charged: true,
        blocks: false,
    };
    relay.settle(&found[0], &[("x", retry), ("y", dead)]).await;
    let deliveries = scratch.store.find(id).await.unwrap();
    assert_eq!(deliveries.len(), 2);
    let (x, y) = (&deliveries[0], &deliveries[1]);
    assert_eq!(
        (x.sink.as_str(), x.status, x.attempts, x.detail.as_deref()),
        ("x", Status::Retry, 1, Some("retry"))
    );
    assert_eq!(
        (y.sink.as_str(), y.status, y.detail.as_deref()),
        ("y", Status::Dead, Some("permanent"))
    );
    assert!(x.due_at.is_some() && y.ended_at.is_some());
    assert_eq!(x.headers.as_deref(), Some("{\"tenant\": \"acme\"}"));
    assert!(x.history.as_deref().unwrap().contains("refused"));
    assert!(y.history.as_deref().unwrap().contains("never"));
    assert!(scratch.store.find(sendoff::Uuid::new_v4()).await.unwrap().is_empty());
}

#[tokio::test]
async fn dead_letters_come_back_in_order_and_it_is_written_down() {
    let scratch = Scratch::new().await;
    let messages: Vec<_> = (0..5).map(|n| message(&format!("t.{n}")).key("k")).collect();
    scratch.emit(&messages).await;
    let mut relay = scratch.relay().await;
    kill(&mut relay, true).await;
    let filter = Filter {
        topic: Some("t.*".to_owned()),
        ..Filter::default()
    };
    assert_eq!(
        scratch
            .store
            .retry_dead(&filter, None, usize::MAX, &mut Command::by("alice"))
            .await
            .unwrap(),
        5
    );
    assert_eq!(
        scratch
            .store
            .retry_dead(&filter, None, usize::MAX, &mut Command::by("alice"))
            .await
            .unwrap(),
        0
    );
    let found = relay.next().await;
    assert_eq!(topics(&found), ["t.0", "t.1", "t.2", "t.3", "t.4"]);
    assert!(
        found
            .iter()
            .all(|outgoing| outgoing.attempts == 0 && outgoing.row_ref.sink.as_deref() == Some("s"))
    );
    let audit = "SELECT concat_ws(' ', who, action, filter ->> 'topic', affected) FROM outbox_audit ORDER BY id";
    assert_eq!(scratch.value(audit).await, "alice dead retry t.* 5");
    let summary = scratch.store.summary().await.unwrap();
    assert_eq!(
        (summary.ready, summary.waiting, summary.dead, summary.failed),
        (0, 5, 0, 0)
    );
}

#[tokio::test]
async fn a_dead_letter_whose_delivery_waits_already_stays() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a")]).await;
    let mut relay = scratch.relay().await;
    kill(&mut relay, false).await;
    scratch
        .run(
            "INSERT INTO outbox_waiting (lane, seq, id, sink, state, topic, payload)
             SELECT lane, seq, id, sink, 'parked', topic, payload FROM outbox_dead",
        )
        .await;
    assert_eq!(
        scratch
            .store
            .retry_dead(&Filter::default(), None, usize::MAX, &mut Command::by("alice"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(scratch.store.summary().await.unwrap().dead, 1);
}

#[tokio::test]
async fn the_summary_tells_how_old_the_oldest_is() {
    let scratch = Scratch::new().await;
    assert_eq!(scratch.store.summary().await.unwrap().oldest_ready, None);
    scratch
        .run("INSERT INTO outbox_message (topic, payload, created_at) VALUES ('a', '', now() - interval '90 seconds')")
        .await;
    let age = scratch.store.summary().await.unwrap().oldest_ready.unwrap();
    assert!(
        age >= Duration::from_secs(90) && age < Duration::from_secs(200),
        "{age:?}"
    );
}
