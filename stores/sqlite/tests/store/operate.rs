use std::time::{Duration, SystemTime};

use sendoff::store::{Filter, OperateStore, RelayStore, Status};
use sendoff::{Event, Message};

use crate::outbox::{TestOutbox, dead, keyed, retry, text};

fn filter(change: impl FnOnce(&mut Filter)) -> Filter {
    let mut filter = Filter::default();
    change(&mut filter);
    filter
}

/// One message in each state.
async fn one_of_each() -> TestOutbox {
    let outbox = TestOutbox::with(|config| config.retention(Duration::from_secs(3600))).await;
    let event = Event::new("order", "42", "order.paid").payload(&"ready").unwrap();
    outbox
        .emit(&[
            text("delivered"),
            text("retried").key("customer-1"),
            Message::bytes("mail_sent", "text/plain", vec![0, 255, b'd', b'e', b'a', b'd']).idempotency_key("once"),
        ])
        .await;
    let mut relay = outbox.relay().await;
    let rows = relay.deliveries().await;
    relay.settle(&rows[0], &[]).await;
    relay.settle(&rows[1], &[("audit", retry(60))]).await;
    relay.settle(&rows[2], &[("mail", dead(false))]).await;
    outbox
        .emit(&[text("scheduled").delay(Duration::from_secs(60)), event.into()])
        .await;
    outbox
}

async fn payloads(outbox: &TestOutbox, filter: &Filter) -> Vec<String> {
    let listing = outbox.store.list(filter, 100, 0).await.unwrap();
    assert!(!listing.more);
    listing
        .messages
        .iter()
        .map(|stored| String::from_utf8_lossy(&stored.payload).into_owned())
        .collect()
}

#[tokio::test]
async fn a_list_is_oldest_first_and_comes_in_pages() {
    let outbox = one_of_each().await;
    let all = ["delivered", "retried", "\0\u{fffd}dead", "scheduled", "\"ready\""];
    assert_eq!(payloads(&outbox, &Filter::default()).await, all);
    let page = outbox.store.list(&Filter::default(), 2, 1).await.unwrap();
    assert!(page.more);
    assert_eq!(page.messages[0].payload, b"retried");
    let page = outbox.store.list(&Filter::default(), 2, 3).await.unwrap();
    assert!(!page.more && page.messages.len() == 2);
}

#[tokio::test]
async fn every_filter_fits_what_it_says() {
    let outbox = one_of_each().await;
    let id = outbox.store.list(&Filter::default(), 100, 0).await.unwrap().messages[1]
        .id
        .unwrap();
    let text = |text: &str| Some(text.to_owned());
    let cases: Vec<(Filter, &[&str])> = vec![
        (filter(|f| f.ids = vec![id]), &["retried"]),
        (
            filter(|f| f.status = Some(Status::Pending)),
            &["scheduled", "\"ready\""],
        ),
        (filter(|f| f.status = Some(Status::Retry)), &["retried"]),
        (filter(|f| f.status = Some(Status::Dead)), &["\0\u{fffd}dead"]),
        (filter(|f| f.status = Some(Status::Delivered)), &["delivered"]),
        (filter(|f| f.topic = text("mail_sent")), &["\0\u{fffd}dead"]),
        (filter(|f| f.topic = text("mail?sent")), &[]),
        (filter(|f| f.topic = text("*.paid")), &["\"ready\""]),
        (filter(|f| f.topic = text("ORDER.*")), &[]),
        (filter(|f| f.key = text("customer-1")), &["retried"]),
        (filter(|f| f.aggregate_type = text("order")), &["\"ready\""]),
        (filter(|f| f.aggregate_id = text("42")), &["\"ready\""]),
        (filter(|f| f.idempotency_key = text("once")), &["\0\u{fffd}dead"]),
        (filter(|f| f.leg = text("audit")), &["retried"]),
        (filter(|f| f.error = text("said n")), &["retried", "\0\u{fffd}dead"]),
        (filter(|f| f.payload = text("dead")), &["\0\u{fffd}dead"]),
        (filter(|f| f.payload = text("edule")), &["scheduled"]),
        (
            filter(|f| f.created_from = Some(SystemTime::now() + Duration::from_secs(60))),
            &[],
        ),
        (
            filter(|f| f.created_until = Some(SystemTime::now() - Duration::from_secs(60))),
            &[],
        ),
        (filter(|f| (f.leg, f.key) = (text("audit"), text("other"))), &[]),
    ];
    for (filter, expected) in cases {
        assert_eq!(payloads(&outbox, &filter).await, expected, "{filter:?}");
    }
}

#[tokio::test]
async fn a_summary_counts_every_state() {
    let outbox = one_of_each().await;
    let summary = outbox.store.summary().await.unwrap();
    assert_eq!((summary.ready, summary.waiting, summary.failed), (1, 2, 1));
    assert_eq!((summary.dead, summary.delivered), (1, 1));
    assert!(summary.oldest_ready.unwrap() < Duration::from_secs(60));
    let backlog = outbox.store.backlog().await.unwrap();
    assert_eq!(
        (backlog.ready, backlog.due, backlog.waiting, backlog.dead),
        (1, 0, 2, 1)
    );
    assert_eq!(
        TestOutbox::new().await.store.summary().await.unwrap().oldest_ready,
        None
    );
}

#[tokio::test]
async fn a_message_is_found_with_all_its_legs_and_their_history() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.deliveries().await.pop().unwrap();
    relay.settle(&row, &[("audit", retry(60)), ("shop", dead(false))]).await;
    let found = outbox.store.find(row.id).await.unwrap();
    let legs: Vec<_> = found
        .iter()
        .map(|stored| (stored.leg.as_str(), stored.status))
        .collect();
    assert_eq!(legs, [("audit", Status::Retry), ("shop", Status::Dead)]);
    assert!(found[0].history.as_deref().unwrap().contains("said no"));
    assert!(found[1].history.as_deref().unwrap().contains("said never"));
    assert!(outbox.store.find(sendoff::Uuid::nil()).await.unwrap().is_empty());
}

#[tokio::test]
async fn dead_letters_come_back_in_order_with_no_attempts_charged() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&keyed("k", &["1", "2", "3"])).await;
    let mut relay = outbox.relay().await;
    for row in relay.deliveries().await {
        relay.settle(&row, &[("audit", dead(false))]).await;
    }
    let some = filter(|f| f.topic = Some("nothing.*".to_owned()));
    assert_eq!(outbox.store.retry_dead(&some, "ann").await.unwrap(), 0);
    let other = filter(|f| f.status = Some(Status::Retry));
    assert_eq!(outbox.store.retry_dead(&other, "ann").await.unwrap(), 0);
    let all = filter(|f| f.status = Some(Status::Dead));
    assert_eq!(outbox.store.retry_dead(&all, "ann").await.unwrap(), 3);
    let rows = relay.deliveries().await;
    assert_eq!(
        rows.iter().map(|row| &row.payload[..]).collect::<Vec<_>>(),
        [b"1", b"2", b"3"]
    );
    assert!(
        rows.iter()
            .all(|row| row.attempts == 0 && row.place.leg.as_deref() == Some("audit"))
    );
    let stored = outbox.store.find(rows[0].id).await.unwrap().pop().unwrap();
    assert!(
        stored.history.unwrap().contains("said never"),
        "what was tried before stays known"
    );
    let audit = "SELECT group_concat(who || ':' || action || ':' || affected) FROM outbox_audit";
    assert_eq!(outbox.ask::<String>(audit), "ann:retry:0,ann:retry:0,ann:retry:3");
    assert_eq!(
        outbox.ask::<String>("SELECT filter FROM outbox_audit WHERE affected = 3"),
        r#"{"status":"dead"}"#
    );
}

#[tokio::test]
async fn a_dead_letter_whose_place_is_taken_stays_where_it_is() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a"), text("b")]).await;
    let mut relay = outbox.relay().await;
    for row in relay.deliveries().await {
        relay.settle(&row, &[("audit", dead(false))]).await;
    }
    outbox.run(
        "INSERT INTO outbox_waiting (lane, seq, id, leg, state, topic, payload)
         SELECT lane, seq, 'other', leg, 'retry', topic, 'other' FROM outbox_dead WHERE seq = 1",
    );
    assert_eq!(outbox.store.retry_dead(&Filter::default(), "ann").await.unwrap(), 1);
    assert_eq!(
        outbox.ask::<String>("SELECT CAST(payload AS TEXT) FROM outbox_dead"),
        "a"
    );
}

#[tokio::test]
async fn what_is_paused_is_told() {
    let outbox = TestOutbox::new().await;
    assert!(outbox.store.paused().await.unwrap().is_empty());
    outbox.run("INSERT INTO outbox_control (kind, name) VALUES ('topic', 'order.*'), ('sink', 'audit')");
    let paused = outbox.store.paused().await.unwrap();
    assert_eq!(
        paused,
        [("sink".into(), "audit".into()), ("topic".into(), "order.*".into())]
    );
}
