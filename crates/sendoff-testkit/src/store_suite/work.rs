//! Items: emitted, handed out, worked on.

use std::collections::HashSet;
use std::time::Duration;

use sendoff::store::{CLAIM_BYTES, ItemCounts};
use sendoff::{Emitted, ErrorKind, Message};

use super::registry::{CaseResult, cases};
use super::scene::{LONG_LEASE, Scene, numbered, persistently, plain};
use super::work_scene::{SHORT_LEASE, claims};

cases![
    an_item_is_handed_out_as_it_was_emitted needs Items,
    payload_bytes_of_items_survive needs Items,
    large_items_are_handed_out_some_at_a_time needs Items,
    an_item_of_a_rolled_back_transaction_never_existed needs Items,
    items_and_messages_do_not_mix needs Items,
    no_item_is_handed_to_two_workers_within_a_lease needs Items,
    items_come_in_the_order_of_their_next_attempt needs Items,
    a_scheduled_item_waits_for_its_time needs Items,
    an_idempotency_key_makes_one_item needs Items,
    a_worker_without_a_name_is_refused needs Items,
    items_are_counted_by_their_state needs Items,
];

async fn an_item_is_handed_out_as_it_was_emitted(scene: Scene) -> CaseResult {
    let message: Message = sendoff::Event::new("order", "42", "order.placed").payload(&"x")?.into();
    let message = message
        .key("customer 7")
        .header("traceparent", "00-1")
        .priority(3)
        .max_attempts(9);
    let id = message.id();
    scene.emit_items([message.schema_version(4)]).await?;
    let item = scene.claim_one("w").await?;
    assert_eq!((item.id, item.topic.as_str()), (id, "order.placed"));
    assert_eq!((item.attempt, item.max_attempts), (1, 9));
    assert_eq!(item.key.as_deref(), Some("customer 7"));
    assert_eq!(
        (item.aggregate_type.as_deref(), item.aggregate_id.as_deref()),
        (Some("order"), Some("42"))
    );
    assert_eq!((item.schema_version, item.priority), (Some(4), 3));
    assert_eq!(item.headers.get("traceparent"), Some("00-1"));
    assert_eq!(item.content_type(), "application/json");
    assert_eq!(scene.work().mark_success("w", &[item.claim]).await?, []);
    assert_eq!(scene.work().item_counts().await?.total(), 0, "done items are gone");
    Ok(())
}

async fn large_items_are_handed_out_some_at_a_time(scene: Scene) -> CaseResult {
    let size = 1_000_000;
    let fit = CLAIM_BYTES.div_ceil(size);
    let payload = |n: usize| vec![u8::try_from(n).expect("there are few"); size];
    for n in 0..fit + 3 {
        scene.emit_items([Message::bytes("t", "x/y", payload(n))]).await?;
    }
    let mut items = scene.work().claim_batch("w", 100, LONG_LEASE).await?;
    assert_eq!(items.len(), fit);
    items.extend(scene.work().claim_batch("w", 100, LONG_LEASE).await?);
    assert_eq!(items.len(), fit + 3);
    for (n, item) in items.iter().enumerate() {
        assert!(item.payload == payload(n), "the payload of number {n}");
    }
    Ok(())
}

async fn payload_bytes_of_items_survive(scene: Scene) -> CaseResult {
    let payloads: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![0],
        (0..=255).collect(),
        b"\xed\xa0\x80 lone surrogate".to_vec(),
        vec![0xff; 200_000],
    ];
    // One by one, and all in one statement.
    for payload in &payloads {
        scene.emit_items([Message::bytes("b", "x/y", payload.clone())]).await?;
    }
    let many = payloads
        .iter()
        .map(|payload| Message::bytes("b", "x/y", payload.clone()));
    scene.emit_items(many).await?;
    let items = scene.work().claim_batch("w", 100, LONG_LEASE).await?;
    let found: Vec<&[u8]> = items.iter().map(|item| &item.payload[..]).collect();
    let expected: Vec<&[u8]> = payloads.iter().chain(&payloads).map(Vec::as_slice).collect();
    assert!(found == expected, "payloads differ, or come in another order");
    assert!(items.iter().all(|item| item.content_type() == "x/y"));
    Ok(())
}

async fn an_item_of_a_rolled_back_transaction_never_existed(scene: Scene) -> CaseResult {
    let mut tx = scene.work().begin_items().await?;
    tx.emit(&[plain("t")]).await?;
    tx.rollback().await?;
    assert_eq!(scene.work().item_counts().await?, ItemCounts::default());
    assert_eq!(scene.work().claim_batch("w", 10, LONG_LEASE).await?, []);
    Ok(())
}

async fn items_and_messages_do_not_mix(scene: Scene) -> CaseResult {
    let message = scene.emit([plain("t")]).await?[0].id();
    let item = scene.emit_items([plain("t")]).await?[0].id();
    assert_eq!(scene.claim_one("w").await?.id, item);
    let read = scene.relay().await?.read_messages(1).await;
    assert_eq!(read.iter().map(|row| row.id).collect::<Vec<_>>(), [message]);
    assert_eq!(scene.subject.relay.backlog().await?.ready, 1);
    Ok(())
}

async fn no_item_is_handed_to_two_workers_within_a_lease(scene: Scene) -> CaseResult {
    const ITEMS: usize = 600;
    scene.emit_items((0..ITEMS).map(|n| numbered("k", n))).await?;
    let mut workers = tokio::task::JoinSet::new();
    for n in 0..6 {
        let store = scene.second().await?.work();
        workers.spawn(async move {
            let (name, mut mine) = (format!("w{n}"), Vec::new());
            loop {
                let items = persistently(|| store.claim_batch(&name, 7, LONG_LEASE)).await?;
                if items.is_empty() {
                    return Ok::<_, sendoff::Error>(mine);
                }
                mine.extend(items.into_iter().map(|item| item.id));
            }
        });
    }
    let mut all = Vec::new();
    for mine in workers.join_all().await {
        all.extend(mine?);
    }
    // A worker may have looked while the last rows were locked by others; then they are left, and nothing is lost.
    all.extend(
        scene
            .work()
            .claim_batch("last", ITEMS, LONG_LEASE)
            .await?
            .into_iter()
            .map(|item| item.id),
    );
    assert_eq!(all.len(), ITEMS, "handed out more or less often than once");
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), ITEMS);
    Ok(())
}

async fn items_come_in_the_order_of_their_next_attempt(scene: Scene) -> CaseResult {
    let delays = [90_u64, 30, 60];
    let late = delays.map(|ms| plain(&format!("after {ms}")).delay(Duration::from_millis(ms)));
    // In one transaction, so that a slow machine puts no time between them.
    let at_once = [plain("first"), plain("second")];
    scene.emit_items(late.into_iter().chain(at_once)).await?;
    scene.pass(Duration::from_millis(90)).await?;
    let items = scene.work().claim_batch("w", 10, LONG_LEASE).await?;
    let topics: Vec<&str> = items.iter().map(|item| item.topic.as_str()).collect();
    assert_eq!(topics, ["first", "second", "after 30", "after 60", "after 90"]);
    // A retry puts an item behind those that are due before it.
    let work = scene.work();
    // The soonest first: however long the marks take, the order of their times is the same.
    for (item, ms) in items.iter().zip([80, 60, 40, 20, 0]).rev() {
        work.mark_retry("w", item.claim, Duration::from_millis(ms), "later")
            .await?;
    }
    scene.pass(Duration::from_millis(80)).await?;
    let again = work.claim_batch("w", 2, LONG_LEASE).await?;
    let topics: Vec<&str> = again.iter().map(|item| item.topic.as_str()).collect();
    assert_eq!(
        topics,
        ["after 90", "after 60"],
        "the limit takes those that are due first"
    );
    Ok(())
}

async fn a_scheduled_item_waits_for_its_time(scene: Scene) -> CaseResult {
    scene
        .emit_items([plain("tomorrow").delay(Duration::from_secs(86_400))])
        .await?;
    scene.emit_items([plain("soon").delay(SHORT_LEASE)]).await?;
    let items = scene.claim_when_due("w", LONG_LEASE).await?;
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].topic, "soon");
    assert_eq!(scene.work().item_counts().await?.pending, 1);
    Ok(())
}

async fn an_idempotency_key_makes_one_item(scene: Scene) -> CaseResult {
    let first = plain("t").idempotency_key("k");
    let id = first.id();
    assert_eq!(scene.emit_items([first.clone()]).await?, [Emitted::Stored { id }]);
    let second = scene.emit_items([plain("t").idempotency_key("k"), plain("t")]).await?;
    assert_eq!(second[0], Emitted::Duplicate { first: id });
    assert!(!second[1].is_duplicate());
    // The very same one again, by a producer that does not know how its commit ended.
    scene.emit_items([first]).await?;
    assert_eq!(scene.work().item_counts().await?.pending, 2);
    Ok(())
}

async fn a_worker_without_a_name_is_refused(scene: Scene) -> CaseResult {
    let refused = scene.work().claim_batch("", 1, LONG_LEASE).await;
    assert_eq!(refused.expect_err("it has no name").kind(), ErrorKind::Invalid);
    Ok(())
}

async fn items_are_counted_by_their_state(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_items((0..7).map(|n| numbered("k", n))).await?;
    let items = work.claim_batch("w", 5, LONG_LEASE).await?;
    work.mark_retry("w", items[0].claim, LONG_LEASE, "no").await?;
    work.mark_failed("w", items[1].claim, "never").await?;
    assert_eq!(work.mark_success("w", &claims(&items[2..3])).await?, []);
    let counts = work.item_counts().await?;
    let expected = ItemCounts {
        pending: 2,
        running: 2,
        retry: 1,
        completed: 0,
        failed: 1,
    };
    assert_eq!(counts, expected);
    Ok(())
}
