//! Emitting: a committed message is there, one of a rolled-back transaction never existed.

use std::time::Duration;

use sendoff::Message;
use sendoff::store::{Backlog, Row, Status, Table};
use tokio::time::Instant;

use super::manual_relay::message;
use super::registry::{CaseResult, cases};
use super::scene::{Scene, TICK, numbered, plain};

cases![
    a_committed_message_is_read_once,
    a_rolled_back_message_never_existed,
    a_dropped_transaction_leaves_nothing,
    an_open_transaction_is_seen_by_nobody,
    messages_of_one_transaction_keep_their_order,
    transactions_of_one_key_keep_their_order,
    a_scheduled_message_stays_away_until_it_is_due,
    a_schedule_in_the_past_is_no_schedule,
    a_message_that_has_expired_comes_as_expired,
    an_urgent_message_overtakes_a_backlog,
    an_idle_backlog_holds_nothing_up,
];

async fn a_committed_message_is_read_once(scene: Scene) -> CaseResult {
    let id = scene.emit([plain("t")]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    assert_eq!((read[0].id, read[0].row_ref.table), (id, Table::Ready));
    relay.read_nothing().await;
    assert_eq!(scene.find_one(id).await?.status, Status::Pending);
    Ok(())
}

async fn a_rolled_back_message_never_existed(scene: Scene) -> CaseResult {
    let (gone, scheduled) = (numbered("k", 0), plain("t").delay(Duration::from_millis(1)));
    let mut tx = scene.subject.emit.begin().await?;
    tx.emit(&[gone.clone(), scheduled.clone()]).await?;
    tx.rollback().await?;
    let stays = scene.emit([numbered("k", 1)]).await?[0].id();
    let mut relay = scene.relay().await?;
    assert_eq!(relay.read_messages(1).await[0].id, stays);
    relay.read_nothing().await;
    for id in [gone.id(), scheduled.id()] {
        assert!(scene.subject.operate.find(id).await?.is_empty());
    }
    Ok(())
}

async fn a_dropped_transaction_leaves_nothing(scene: Scene) -> CaseResult {
    let once = || plain("t").idempotency_key("once");
    let mut tx = scene.subject.emit.begin().await?;
    let dropped = tx.emit(&[once()]).await?[0].id();
    drop(tx);
    // Its locks go, too: the key is free again.
    let stored = scene.emit([once()]).await?[0];
    assert!(!stored.is_duplicate());
    let mut relay = scene.relay().await?;
    assert_eq!(relay.read_messages(1).await[0].id, stored.id());
    assert!(scene.subject.operate.find(dropped).await?.is_empty());
    Ok(())
}

async fn an_open_transaction_is_seen_by_nobody(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    let mut tx = scene.subject.emit.begin().await?;
    let emitted = tx.emit(&[plain("t")]).await?;
    relay.read_nothing().await;
    assert_eq!(scene.subject.relay.backlog().await?, Backlog::default());
    tx.commit().await?;
    assert_eq!(relay.read_messages(1).await[0].id, emitted[0].id());
    Ok(())
}

async fn messages_of_one_transaction_keep_their_order(scene: Scene) -> CaseResult {
    // With and without idempotency keys, because they take other ways into the table.
    let message = |n: usize| match n % 7 {
        0 => numbered("k", n).idempotency_key(n),
        _ => numbered("k", n),
    };
    let mut tx = scene.subject.emit.begin().await?;
    tx.emit(&(0..250).map(message).collect::<Vec<_>>()).await?;
    tx.emit(&(250..300).map(|n| numbered("k", n)).collect::<Vec<_>>())
        .await?;
    tx.emit(&[numbered("k", 300)]).await?;
    tx.commit().await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(301).await;
    let numbers: Vec<String> = read
        .iter()
        .map(|d| String::from_utf8_lossy(&d.payload).into_owned())
        .collect();
    assert_eq!(numbers, (0..301).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(read.is_sorted_by_key(|outgoing| outgoing.row_ref.seq));
    Ok(())
}

async fn transactions_of_one_key_keep_their_order(scene: Scene) -> CaseResult {
    let other = scene.second().await?;
    let mut ids = Vec::new();
    for n in 0..20 {
        // Two programs take turns: the order is the database's, not a program's.
        let scene = if n % 2 == 0 { &scene } else { &other };
        ids.push(scene.emit([numbered("k", n)]).await?[0].id());
    }
    let mut relay = scene.relay().await?;
    let read: Vec<_> = relay
        .read_messages(20)
        .await
        .iter()
        .map(|outgoing| outgoing.id)
        .collect();
    assert_eq!(read, ids);
    Ok(())
}

async fn a_scheduled_message_stays_away_until_it_is_due(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    let (delay, began) = (Duration::from_millis(400), Instant::now());
    let emitted = scene
        .emit([plain("t").delay(delay), plain("u").delay(Duration::from_secs(3600))])
        .await?;
    let (soon, later) = (emitted[0].id(), emitted[1].id());
    let stored = scene.find_one(soon).await?;
    assert_eq!(
        (stored.status, stored.detail.as_deref()),
        (Status::Scheduled, Some("scheduled"))
    );
    let read = relay.read_messages(1).await;
    assert!(began.elapsed() + TICK >= delay, "it came after {:?}", began.elapsed());
    assert_eq!(
        (read[0].id, read[0].row_ref.table, &read[0].row_ref.sink),
        (soon, Table::Waiting, &None)
    );
    assert_eq!(read[0].attempts, 0);
    relay.deliver(&read).await?;
    assert!(scene.subject.operate.find(soon).await?.is_empty());
    let due = scene.find_one(later).await?.due_at.expect("it is due some day");
    let in_an_hour = stored.created_at + Duration::from_secs(3600);
    assert!(
        due >= in_an_hour - TICK && due <= in_an_hour + Duration::from_secs(60),
        "{due:?}"
    );
    Ok(())
}

async fn a_schedule_in_the_past_is_no_schedule(scene: Scene) -> CaseResult {
    let past = scene.now().await? - Duration::from_secs(3600);
    let id = scene.emit([plain("t").available_at(past)]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    assert_eq!((read[0].id, read[0].row_ref.table), (id, Table::Ready));
    Ok(())
}

async fn a_message_that_has_expired_comes_as_expired(scene: Scene) -> CaseResult {
    let now = scene.now().await?;
    let expired = [
        plain("t").expires_at(now - Duration::from_secs(1)),
        plain("t")
            .expires_at(now - Duration::from_secs(1))
            .delay(Duration::from_millis(1)),
    ];
    let fresh = plain("t").expires_at(now + Duration::from_secs(3600));
    let ids: Vec<_> = expired.iter().map(Message::id).collect();
    scene.emit(expired.into_iter().chain([fresh.clone()])).await?;
    let mut relay = scene.relay().await?;
    for row in relay.read_rows(3).await {
        match row {
            Row::Expired(outgoing) => assert!(ids.contains(&outgoing.id)),
            other => assert!(!ids.contains(&message(other).id)),
        }
    }
    Ok(())
}

async fn an_urgent_message_overtakes_a_backlog(scene: Scene) -> CaseResult {
    scene.emit((0..2000).map(|_| plain("common"))).await?;
    let urgent = scene.emit((0..5).map(|_| plain("urgent").priority(1))).await?;
    let mut relay = scene.relay().await?;
    // A page has a share for each lane, and the ids may bring all of them into one.
    let page = relay.read(400).await?;
    assert!(page.more && page.rows.len() < 1500, "{} rows", page.rows.len());
    let read: Vec<_> = page.rows.into_iter().map(|row| message(row).id).collect();
    for emitted in urgent {
        assert!(
            read.contains(&emitted.id()),
            "an urgent message is not in the first page"
        );
    }
    Ok(())
}

async fn an_idle_backlog_holds_nothing_up(scene: Scene) -> CaseResult {
    scene.emit((0..2000).map(|_| plain("idle").priority(-1))).await?;
    let common = scene.emit((0..5).map(|_| plain("common"))).await?;
    let keyed = scene.emit([numbered("k", 0).priority(-1)]).await?;
    let mut relay = scene.relay().await?;
    // A few lanes may have all of them, and a page has a share for each.
    let mut read = Vec::new();
    for _ in 0..2 {
        let page = relay.read(200).await?;
        read.extend(page.rows.into_iter().map(|row| message(row).id));
    }
    assert!(read.len() < 1000, "{} rows", read.len());
    // Where a key forbids it, priority changes nothing.
    for emitted in common.into_iter().chain(keyed) {
        assert!(read.contains(&emitted.id()), "a message waits for idle ones");
    }
    // And the idle ones come, too.
    relay.read_rows(2006 - read.len()).await;
    Ok(())
}
