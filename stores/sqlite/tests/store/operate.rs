use std::time::{Duration, SystemTime};

use sendoff::store::{Command, Filter, OperateStore, RelayStore, Status};
use sendoff::{Event, Message};

use crate::operate_retry::{actions, due_and_not};
use crate::outbox::{TestOutbox, dead, keyed, parked, retry, text};

pub(crate) fn filter(change: impl FnOnce(&mut Filter)) -> Filter {
    let mut filter = Filter::default();
    change(&mut filter);
    filter
}

/// One message in each state.
async fn one_of_each() -> TestOutbox {
    let outbox = TestOutbox::with(|config| config.retention(Some(Duration::from_secs(3600)))).await;
    let event = Event::new("order", "42", "order.paid").payload(&"ready").unwrap();
    outbox
        .emit(&[
            text("delivered"),
            text("retried").key("customer-1"),
            Message::bytes("mail_sent", "text/plain", vec![0, 255, b'd', b'e', b'a', b'd']).idempotency_key("once"),
        ])
        .await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    relay.settle(&rows[0], &[]).await;
    relay.settle(&rows[1], &[("audit", retry(60))]).await;
    relay.settle(&rows[2], &[("mail", dead(false))]).await;
    outbox
        .emit(&[text("scheduled").delay(Duration::from_secs(60)), event.into()])
        .await;
    outbox
}

async fn payloads(outbox: &TestOutbox, filter: &Filter) -> Vec<String> {
    let listing = outbox.store.list(filter, 100).await.unwrap();
    assert!(!listing.more);
    listing
        .messages
        .iter()
        .map(|stored| String::from_utf8_lossy(&stored.payload).into_owned())
        .collect()
}

#[tokio::test]
async fn a_list_is_oldest_first_and_says_whether_there_is_more() {
    let outbox = one_of_each().await;
    let all = ["delivered", "retried", "\0\u{fffd}dead", "scheduled", "\"ready\""];
    assert_eq!(payloads(&outbox, &Filter::default()).await, all);
    let page = outbox.store.list(&Filter::default(), 2).await.unwrap();
    assert!(page.more);
    assert_eq!(page.messages[1].payload, b"retried");
    let page = outbox.store.list(&Filter::default(), 5).await.unwrap();
    assert!(!page.more && page.messages.len() == 5);
}

#[tokio::test]
async fn every_filter_fits_what_it_says() {
    let outbox = one_of_each().await;
    let id = outbox.store.list(&Filter::default(), 100).await.unwrap().messages[1]
        .id
        .unwrap();
    let text = |text: &str| Some(text.to_owned());
    let cases: Vec<(Filter, &[&str])> = vec![
        (filter(|f| f.ids = vec![id]), &["retried"]),
        (filter(|f| f.status = Some(Status::Pending)), &["\"ready\""]),
        (filter(|f| f.status = Some(Status::Scheduled)), &["scheduled"]),
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
        (filter(|f| f.sink = text("audit")), &["retried"]),
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
        (filter(|f| (f.sink, f.key) = (text("audit"), text("other"))), &[]),
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
async fn a_message_is_found_with_all_its_deliveries_and_their_history() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    relay.settle(&row, &[("audit", retry(60)), ("shop", dead(false))]).await;
    let found = outbox.store.find(row.id).await.unwrap();
    let deliveries: Vec<_> = found
        .iter()
        .map(|stored| (stored.sink.as_str(), stored.status))
        .collect();
    assert_eq!(deliveries, [("audit", Status::Retry), ("shop", Status::Dead)]);
    assert!(found[0].history.as_deref().unwrap().contains("said no"));
    assert!(found[1].history.as_deref().unwrap().contains("said never"));
    assert!(outbox.store.find(sendoff::Uuid::nil()).await.unwrap().is_empty());
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

#[tokio::test]
async fn counting_agrees_with_the_list() {
    let outbox = one_of_each().await;
    assert_eq!(outbox.store.count(&Filter::default()).await.unwrap(), 5);
    let some = filter(|f| f.status = Some(Status::Pending));
    assert_eq!(outbox.store.count(&some).await.unwrap(), 1);
    let some = filter(|f| f.topic = Some("mail*".to_owned()));
    assert_eq!(outbox.store.count(&some).await.unwrap(), 1);
}

#[tokio::test]
async fn blocked_keys_are_shown_with_what_they_wait_for_and_can_be_released() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&keyed("dead", &["1", "2", "3"])).await;
    outbox.emit(&keyed("retried", &["4", "5"])).await;
    outbox.emit(&keyed("alone", &["6"])).await;
    outbox.emit(&keyed("unrouted", &["7", "8"])).await;
    outbox.emit(&keyed("fine", &["9"])).await;
    let mut relay = outbox.relay().await;
    for row in relay.outgoing().await {
        let verdict = match &row.payload[..] {
            b"1" | b"6" => ("audit", dead(true)),
            b"4" => ("audit", retry(60)),
            b"7" => ("", dead(true)),
            b"9" => ("audit", parked(60)),
            _ => ("audit", sendoff::store::Verdict::Blocked),
        };
        relay.settle(&row, &[verdict]).await;
    }
    let keys = outbox.store.keys(10).await.unwrap();
    let shown: Vec<_> = keys
        .iter()
        .map(|key| (key.key.as_str(), key.sink.as_str(), key.blocked, key.state.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("dead", "audit", 2, "dead"),
            ("retried", "audit", 1, "retry"),
            ("unrouted", "audit", 1, "dead"),
            ("alone", "audit", 0, "dead"),
            ("unrouted", "", 0, "dead"),
        ]
    );
    assert!(keys.iter().all(|key| key.head.is_some() && key.last_error.is_some()));
    assert!(keys[0].due_at.is_none() && keys[1].due_at.is_some());
    assert_eq!(outbox.store.keys(1).await.unwrap().len(), 1);

    let release = async |key: &str, sink| outbox.store.release_key(key, sink, "ann").await.unwrap();
    assert_eq!(release("nothing", None).await, 0);
    assert_eq!(release("dead", Some("shop")).await, 0);
    assert_eq!(release("dead", Some("audit")).await, 1);
    assert_eq!(due_and_not(&outbox).0, "2,3");
    assert_eq!(release("unrouted", None).await, 1);
    assert_eq!(due_and_not(&outbox).0, "2,3,8");
    assert_eq!(release("retried", None).await, 0, "what backs off is not given up");
    assert_eq!(outbox.store.backlog().await.unwrap().dead, 3, "dead letters stay");
}

#[tokio::test]
async fn lanes_are_shown_with_their_owners_and_what_is_in_them() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&keyed("k", &["1", "2"])).await;
    let views = outbox.store.lane_views().await.unwrap();
    assert_eq!(views.len(), 80);
    assert!(views.iter().all(|view| view.owner.is_none() && view.until.is_none()));
    assert_eq!(views.iter().map(|view| view.ready).max(), Some(2));
    let relay = outbox.relay().await;
    let view = outbox.store.lane_views().await.unwrap().remove(7);
    assert_eq!((view.lane, view.epoch, view.crashes), (7, 1, 0));
    assert_eq!((view.owner, view.relay.as_deref()), (Some(relay.owner.0), Some("test")));
    assert!(view.until.unwrap() > SystemTime::now());
}

#[tokio::test]
async fn pauses_begin_end_and_are_told() {
    use sendoff::store::{Pausable, RetryState, Verdict};
    let outbox = TestOutbox::new().await;
    let (sink, topic) = (Pausable::Sink("audit".into()), Pausable::Topic("order.*".into()));
    assert!(outbox.store.pause(&sink, "ann").await.unwrap());
    assert!(!outbox.store.pause(&sink, "bob").await.unwrap());
    assert!(outbox.store.pause(&topic, "bob").await.unwrap());
    let pauses = outbox.store.pauses().await.unwrap();
    assert_eq!(pauses.len(), 2);
    assert!(pauses.iter().any(|pause| pause.what == sink && pause.by == "ann"));
    assert!(
        pauses
            .iter()
            .all(|pause| pause.since.elapsed().unwrap_or_default() < Duration::from_secs(60))
    );
    assert_eq!(outbox.store.paused().await.unwrap().len(), 2);

    outbox.emit(&[text("paused"), text("down")]).await;
    let mut relay = outbox.relay().await;
    for row in relay.outgoing().await {
        let verdict = if row.payload == "paused" {
            Verdict::Paused {
                by: "order.*".to_owned(),
            }
        } else {
            Verdict::Retry {
                state: RetryState::Deferred,
                delay: Duration::from_secs(60),
                charged: false,
                error: "refused".to_owned(),
            }
        };
        relay.settle(&row, &[("audit", verdict)]).await;
    }
    assert!(outbox.store.resume(&sink, "ann").await.unwrap());
    assert_eq!(due_and_not(&outbox).0, "");
    assert!(outbox.store.resume(&topic, "ann").await.unwrap());
    assert_eq!(
        due_and_not(&outbox).0,
        "paused",
        "what waited for the topic goes on at once"
    );
    assert!(!outbox.store.resume(&topic, "ann").await.unwrap());
    assert!(outbox.store.pauses().await.unwrap().is_empty());
    let audit = outbox.store.audit(2).await.unwrap();
    assert_eq!(audit.len(), 2);
    assert_eq!(
        (audit[0].action.as_str(), audit[0].affected),
        ("resume", 0),
        "the newest first"
    );
    assert_eq!(
        (audit[1].filter.as_str(), audit[1].affected),
        (r#"{"topic":"order.*"}"#, 1)
    );
}

#[tokio::test]
async fn cleaning_up_deletes_what_is_older_than_its_windows() {
    use sendoff::store::{Cleaned, Retention};
    let outbox = TestOutbox::with(|config| config.retention(Some(Duration::from_secs(999_999)))).await;
    let messages: Vec<_> = (0..6).map(|n| text(&n.to_string()).idempotency_key(n)).collect();
    outbox.emit(&messages).await;
    let mut relay = outbox.relay().await;
    for (row, n) in relay.outgoing().await.into_iter().zip(0..) {
        let verdict = if n < 3 { vec![] } else { vec![("audit", dead(n == 3))] };
        relay.settle(&row, &verdict).await;
    }
    outbox.run(
        "UPDATE outbox_delivered SET delivered_at = 1 WHERE seq < 3;
         UPDATE outbox_dead SET dead_at = 1 WHERE seq < 6;
         UPDATE outbox_dedup SET until = 1 WHERE idempotency_key < '2';",
    );
    let hour = Some(Duration::from_secs(3600));
    let clean = async |retention, limit| {
        let cleaned = outbox.store.clean_up(&retention, limit, &mut Command::by("ann")).await;
        let Cleaned { deleted, more } = cleaned.unwrap();
        (deleted, more)
    };
    assert_eq!(clean(Retention::default(), 100).await, (0, false));
    let retention = Retention {
        delivered: hour,
        dead: hour,
        dedup: true,
        inbox: hour,
    };
    assert_eq!(clean(retention, 3).await, (3, true));
    assert_eq!(clean(retention, 3).await, (2, false));
    let left = |table: &str| outbox.ask::<String>(&format!("SELECT group_concat(idempotency_key) FROM outbox_{table}"));
    assert_eq!(left("delivered"), "2");
    assert_eq!(left("dead"), "3,5", "one blocks its key, one is young");
    assert_eq!(left("dedup"), "2,3,4,5");
    assert_eq!(actions(&outbox), "ann cleanup 0,ann cleanup 3,ann cleanup 2");
}
