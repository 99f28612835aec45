use std::time::{Duration, SystemTime};

use sendoff::Message;
use sendoff::store::{ReadRequest, RelayStore, Row};

use crate::outbox::{TestOutbox, outgoing, retry, text};

fn forgetting(rows: &[Row]) -> ReadRequest {
    ReadRequest {
        limit: 100,
        ready: true,
        due: true,
        forgotten: rows.iter().map(|row| row.row_ref().clone()).collect(),
        ..ReadRequest::default()
    }
}

#[tokio::test]
async fn a_message_comes_out_as_it_was_emitted() {
    let outbox = TestOutbox::new().await;
    let expires = SystemTime::UNIX_EPOCH + Duration::from_micros(4_000_000_000_000_001);
    let message = Message::bytes("order.placed", "application/x", vec![0, 255, 10])
        .key("customer-7")
        .header("traceparent", "00-ab")
        .idempotency_key("once")
        .priority(-3)
        .max_attempts(9)
        .schema_version(2)
        .expires_at(expires);
    outbox.emit(std::slice::from_ref(&message)).await;
    let mut relay = outbox.relay().await;
    let found = relay.outgoing().await.pop().unwrap();
    assert_eq!(found.id, message.id());
    assert_eq!(found.topic, "order.placed");
    assert_eq!(&found.payload, message.payload());
    assert_eq!(found.content_type(), "application/x");
    assert_eq!(&found.headers, message.headers_ref());
    assert_eq!(found.key.as_deref(), Some("customer-7"));
    assert_eq!(found.idempotency_key.as_deref(), Some("once"));
    assert_eq!(
        (found.priority, found.max_attempts, found.schema_version),
        (-3, Some(9), Some(2))
    );
    assert_eq!((found.expires_at, found.attempts), (Some(expires), 0));
    let age = SystemTime::now().duration_since(found.created_at).unwrap_or_default();
    assert!(age < Duration::from_secs(60), "{age:?}");
}

#[tokio::test]
async fn a_row_is_read_once_until_it_is_forgotten() {
    let outbox = TestOutbox::new().await;
    outbox
        .emit(&[text("a").key("k"), text("b").key("k"), text("c").key("other")])
        .await;
    let mut relay = outbox.relay().await;
    let rows = relay.read().await;
    assert_eq!(rows.len(), 3);
    assert!(relay.read().await.is_empty());
    let again = relay.reader.read(forgetting(&rows[1..2])).await.unwrap();
    assert_eq!(again.rows.len(), 1);
    assert_eq!(again.rows[0].row_ref(), rows[1].row_ref());
    assert!(relay.read().await.is_empty());
}

#[tokio::test]
async fn a_reader_gets_a_lane_from_its_beginning_when_it_gains_it() {
    let outbox = TestOutbox::new().await;
    let messages: Vec<_> = (0..200).map(|n| text(&n.to_string())).collect();
    outbox.emit(&messages).await;
    let relay = outbox.relay().await;
    let (some, rest) = relay.grants.split_at(30);
    let mut reader = outbox.store.reader();
    let request = || ReadRequest {
        limit: 1000,
        ready: true,
        ..ReadRequest::default()
    };
    reader.gained(some);
    let first = reader.read(request()).await.unwrap().rows;
    assert!(
        first
            .iter()
            .all(|row| some.iter().any(|grant| grant.lane == row.row_ref().lane))
    );
    outbox.emit(&[text("late")]).await;
    reader.gained(rest);
    let second = reader.read(request()).await.unwrap().rows;
    assert_eq!(first.len() + second.len(), 201);

    let lane = first[0].row_ref().lane;
    reader.lost(&[lane]);
    reader.gained(&[relay.grants.iter().find(|grant| grant.lane == lane).unwrap().clone()]);
    let of_lane = |rows: &[Row]| rows.iter().filter(|row| row.row_ref().lane == lane).count();
    let third = reader.read(request()).await.unwrap().rows;
    assert_eq!(
        third.len(),
        of_lane(&first) + of_lane(&second),
        "all of the lane that came back, and nothing else"
    );
}

#[tokio::test]
async fn lanes_that_were_lost_are_not_read() {
    let outbox = TestOutbox::new().await;
    let mut relay = outbox.relay().await;
    let lanes: Vec<_> = relay.grants.iter().map(|grant| grant.lane).collect();
    relay.reader.lost(&lanes);
    outbox.emit(&[text("a")]).await;
    assert!(relay.read().await.is_empty());
}

#[tokio::test]
async fn pages_follow_each_other_in_order() {
    let outbox = TestOutbox::new().await;
    let messages: Vec<_> = (0..100).map(|n| text(&n.to_string()).key("k")).collect();
    outbox.emit(&messages).await;
    let mut relay = outbox.relay().await;
    let mut seen = Vec::new();
    loop {
        let page = relay.page(16).await;
        let more = page.more;
        assert!(page.rows.len() <= 16);
        seen.extend(page.rows.into_iter().map(|row| outgoing(row).payload));
        if !more {
            break;
        }
    }
    assert_eq!(
        seen,
        messages
            .iter()
            .map(|message| message.payload().clone())
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn urgent_messages_overtake_a_backlog_and_idle_ones_do_not_hold_it_up() {
    let outbox = TestOutbox::new().await;
    let idle: Vec<_> = (0..300).map(|_| text("idle").priority(-1)).collect();
    let normal: Vec<_> = (0..300).map(|_| text("normal")).collect();
    outbox.emit(&idle).await;
    outbox.emit(&normal).await;
    outbox.emit(&[text("urgent").priority(5)]).await;
    let mut relay = outbox.relay().await;
    let page = relay.page(64).await;
    let payloads: Vec<_> = page.rows.into_iter().map(|row| outgoing(row).payload).collect();
    assert_eq!(payloads[0], "urgent");
    let idle = payloads.iter().filter(|payload| *payload == "idle").count();
    assert!(
        (1..=8).contains(&idle),
        "a small share, so that they are not kept waiting for ever: {idle}"
    );
}

#[tokio::test]
async fn rows_inserted_below_the_floor_by_hand_are_found() {
    let outbox = TestOutbox::new().await;
    outbox.run("INSERT INTO outbox_message (seq, topic, payload) VALUES (1000, 't', 'first')");
    let mut relay = outbox.relay().await;
    assert_eq!(relay.payloads().await, ["first"]);
    outbox.run(
        "INSERT INTO outbox_message (seq, topic, payload) VALUES (5, 't', 'by hand');
         INSERT INTO outbox_message (seq, topic, payload) VALUES (-5, 't', 'below zero');",
    );
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    assert_eq!(relay.payloads().await, ["below zero", "by hand"]);
    assert!(relay.read().await.is_empty());
}

#[tokio::test]
async fn a_message_that_has_expired_is_marked_so() {
    let outbox = TestOutbox::new().await;
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    outbox.emit(&[text("old").expires_at(past), text("new")]).await;
    let mut relay = outbox.relay().await;
    let rows = relay.read().await;
    assert!(matches!(&rows[0], Row::Expired(outgoing) if outgoing.payload == "old"));
    assert!(matches!(&rows[1], Row::Message(_)));
}

#[tokio::test]
async fn scheduled_messages_come_when_they_are_due_and_not_before() {
    let outbox = TestOutbox::new().await;
    outbox
        .emit(&[
            text("later").key("k").delay(Duration::from_secs(3600)),
            text("now").key("k"),
        ])
        .await;
    let mut relay = outbox.relay().await;
    assert_eq!(relay.payloads().await, ["now"]);
    assert_eq!(outbox.store.backlog().await.unwrap().waiting, 1);
    outbox.run("UPDATE outbox_waiting SET due_at = 1");
    let due = relay.outgoing().await;
    assert_eq!((&due[0].payload[..], &due[0].row_ref.sink), (&b"later"[..], &None));
    assert!(relay.read().await.is_empty(), "it is in flight");
}

#[tokio::test]
async fn waiting_rows_of_deliveries_to_skip_are_left_alone() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    relay.settle(&row, &[("audit", retry(0)), ("shop", retry(0))]).await;
    let request = |skip: &[&str]| ReadRequest {
        limit: 10,
        due: true,
        skip_sinks: skip.iter().map(|sink| (*sink).to_owned()).collect(),
        ..ReadRequest::default()
    };
    let due_deliveries = |rows: Vec<Row>| {
        let deliveries = rows
            .into_iter()
            .map(|row| outgoing(row).row_ref.sink.unwrap().to_string());
        deliveries.collect::<Vec<_>>()
    };
    assert_eq!(
        due_deliveries(relay.reader.read(request(&["shop"])).await.unwrap().rows),
        ["audit"]
    );
    assert_eq!(
        due_deliveries(relay.reader.read(request(&[])).await.unwrap().rows),
        ["shop"]
    );
}

#[tokio::test]
async fn a_read_that_nobody_waited_for_loses_no_row() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a"), text("b")]).await;
    let mut relay = outbox.relay().await;
    let polled = {
        let request = ReadRequest {
            limit: 10,
            ready: true,
            ..ReadRequest::default()
        };
        let mut read = relay.reader.read(request);
        // Polled once, so that the work has begun, and then dropped.
        std::future::poll_fn(|context| std::task::Poll::Ready(read.as_mut().poll(context))).await
    };
    // On a busy machine the page may have come within that poll: then somebody has waited for it.
    let mut rows = match polled {
        std::task::Poll::Ready(page) => page.unwrap().rows,
        std::task::Poll::Pending => Vec::new(),
    };
    rows.extend(relay.read().await);
    let payloads: Vec<_> = rows.into_iter().map(|row| outgoing(row).payload).collect();
    assert_eq!(payloads, ["a", "b"]);
    assert!(relay.read().await.is_empty());
}

#[tokio::test]
async fn rows_emitted_while_reading_are_all_found_in_order() {
    let outbox = TestOutbox::new().await;
    let store = outbox.another();
    let writer = tokio::spawn(async move {
        use sendoff::store::EmitStore;
        for n in 0..100 {
            let mut transaction = store.begin().await.unwrap();
            let batch: Vec<_> = (0..5).map(|m| text(&(n * 5 + m).to_string()).key("k")).collect();
            transaction.emit(&batch).await.unwrap();
            if n % 10 == 3 {
                transaction.rollback().await.unwrap();
            } else {
                transaction.commit().await.unwrap();
            }
        }
    });
    let mut relay = outbox.relay().await;
    let mut seen: Vec<u32> = Vec::new();
    while seen.len() < 450 {
        seen.extend(
            relay
                .payloads()
                .await
                .iter()
                .map(|payload| payload.parse::<u32>().unwrap()),
        );
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    assert!(relay.read().await.is_empty());
    let expected: Vec<u32> = (0..500).filter(|n| n / 5 % 10 != 3).collect();
    assert_eq!(seen, expected);
}
