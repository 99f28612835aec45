//! Reading, with transactions that commit late.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sendoff::Message;
use sendoff::store::{EmitStore, Outgoing, ReadRequest, RelayStore, RetryState, Row, Verdict};

use crate::scratch::{Relay, Scratch, connect, message, topics};

/// Reads and delivers until `done` says so.
async fn drain(relay: &mut Relay, mut done: impl FnMut(&[Outgoing]) -> bool) -> Vec<Outgoing> {
    let mut all = Vec::new();
    for _ in 0..3000 {
        let found = relay.read().await;
        relay.deliver(&found).await;
        all.extend(found);
        if done(&all) {
            return all;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("only {} messages came", all.len());
}

#[tokio::test]
async fn a_transaction_held_open_while_thousands_commit_is_delivered_in_order() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    let mut slow = scratch.store.begin().await.unwrap();
    slow.emit(&[message("slow").key("k")]).await.unwrap();
    let emitting = async {
        for batch in 0..100 {
            let messages: Vec<_> = (0..100).map(|n| message("quick").key(format!("{batch}-{n}"))).collect();
            scratch.emit(&messages).await;
        }
    };
    let (quick, ()) = tokio::join!(drain(&mut relay, |all| all.len() == 10_000), emitting);
    assert_eq!(quick.len(), 10_000);
    // Long enough for the floor to have passed the slow one, by any patience.
    tokio::time::sleep(Duration::from_millis(700)).await;
    drain(&mut relay, |_| true).await;
    slow.commit().await.unwrap();
    scratch.emit(&[message("after").key("k")]).await;
    let late = drain(&mut relay, |all| all.len() == 2).await;
    assert_eq!(topics(&late), ["slow", "after"]);
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "0");
}

#[tokio::test]
async fn transactions_of_all_lengths_keep_the_order_of_their_keys() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    let mut writers = Vec::new();
    for writer in 0..12_u64 {
        let store = scratch.store.clone();
        writers.push(tokio::spawn(async move {
            for n in 0..30_u64 {
                let mut tx = store.begin().await.unwrap();
                let topic = format!("{writer}.{n}");
                tx.emit(&[message(&topic).key(format!("key-{writer}"))]).await.unwrap();
                // Some transactions take much longer than others.
                tokio::time::sleep(Duration::from_millis(
                    [0, 1, 20, 450][usize::try_from((writer * 7 + n) % 4).unwrap()],
                ))
                .await;
                if n % 5 == 4 {
                    tx.rollback().await.unwrap();
                } else {
                    tx.commit().await.unwrap();
                }
            }
        }));
    }
    let expected = 12 * 24;
    let all = drain(&mut relay, |all| all.len() >= expected).await;
    for writer in writers {
        writer.await.unwrap();
    }
    let rest = drain(&mut relay, |_| true).await;
    assert_eq!((all.len(), rest.len()), (expected, 0));
    let mut last: HashMap<String, i64> = HashMap::new();
    for outgoing in &all {
        let (writer, n) = outgoing.topic.split_once('.').unwrap();
        let n: i64 = n.parse().unwrap();
        let before = last.insert(writer.to_owned(), n).unwrap_or(-1);
        assert!(n > before, "{writer}.{n} came after {writer}.{before}");
    }
}

#[tokio::test]
async fn a_row_that_is_forgotten_comes_again() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a").key("k"), message("b").key("k")]).await;
    let mut relay = scratch.relay().await;
    let found = relay.read().await;
    // Let the floor pass them.
    for _ in 0..5 {
        assert!(relay.read().await.is_empty());
    }
    let request = ReadRequest {
        limit: 10,
        forgotten: vec![found[0].row_ref.clone()],
        ready: true,
        ..ReadRequest::default()
    };
    let page = relay.reader.read(request).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    assert_eq!(page.rows[0].row_ref(), &found[0].row_ref);
}

#[tokio::test]
async fn urgent_messages_come_first_and_idle_ones_last() {
    let scratch = Scratch::new().await;
    let mut messages = Vec::new();
    for n in 0..30 {
        messages.push(message("idle").priority(-1));
        messages.push(message("normal"));
        messages.push(message("keyed").key(n).priority(5));
        messages.push(message("urgent").priority(1));
    }
    scratch.emit(&messages).await;
    let mut relay = scratch.relay().await;
    let found = relay.read().await;
    let kinds: Vec<u8> = found
        .iter()
        .map(|outgoing| match outgoing.topic.as_str() {
            "urgent" => 0,
            "idle" => 2,
            _ => 1,
        })
        .collect();
    assert_eq!(kinds.len(), 120);
    assert!(kinds.is_sorted(), "{kinds:?}");
}

#[tokio::test]
async fn one_hot_lane_gets_large_pages_and_comes_in_order() {
    let scratch = Scratch::new().await;
    let messages: Vec<_> = (0..6000).map(|n| message(&format!("{n}")).key("hot")).collect();
    scratch.emit(&messages).await;
    let mut relay = scratch.relay().await;
    let (mut all, mut largest, mut pages) = (Vec::new(), 0, 0);
    loop {
        let page = relay.page().await;
        let more = page.more;
        let found: Vec<_> = page.rows.into_iter().map(|row| row.row_ref().seq).collect();
        largest = largest.max(found.len());
        pages += 1;
        all.extend(found);
        if !more {
            break;
        }
    }
    assert_eq!(all.len(), 6000);
    assert!(all.is_sorted());
    assert!(largest >= 500, "the largest page had {largest} rows");
    assert!(pages < 20, "{pages} pages");
}

#[tokio::test]
async fn backlog_of_many_keys_comes_whole_and_in_order_and_an_urgent_message_overtakes_it() {
    let scratch = Scratch::new().await;
    scratch
        .run("INSERT INTO outbox_message (topic, key, payload) SELECT 't', n % 700, '' FROM generate_series(1, 20000) AS n")
        .await;
    let mut relay = scratch.relay().await;
    let (mut newest, mut count, mut pages): (BTreeMap<String, i64>, usize, usize) = Default::default();
    while count < 20_001 {
        if pages == 8 {
            scratch.emit(&[message("urgent").priority(1)]).await;
        }
        let found = relay.next().await;
        pages += 1;
        assert!(pages < 200, "only {count} came");
        assert_eq!(
            pages == 9,
            found.iter().any(|outgoing| outgoing.topic == "urgent"),
            "page {pages}"
        );
        for outgoing in &found {
            let key = outgoing.key.clone().unwrap_or_default();
            let before = newest.insert(key, outgoing.row_ref.seq).unwrap_or_default();
            assert!(
                before < outgoing.row_ref.seq,
                "{} came after {before}",
                outgoing.row_ref.seq
            );
        }
        count += found.len();
        relay.deliver(&found).await;
    }
    assert_eq!(scratch.value("SELECT count(*)::text FROM outbox_message").await, "0");
}

#[tokio::test]
async fn a_bad_row_spoils_only_itself() {
    let scratch = Scratch::new().await;
    scratch
        .run(
            "INSERT INTO outbox_message (topic, key, payload, headers, max_attempts) VALUES
                ('good', 'k', '', '{\"a\": \"b\"}', 3), ('number', 'k', '', '{\"a\": 1}', NULL), ('list', 'k', '', '[]', NULL),
                ('', 'k', '', NULL, NULL), ('limit', 'k', '', NULL, 0), ('last', 'k', '', NULL, NULL)",
        )
        .await;
    let mut relay = scratch.relay().await;
    let page = relay.page().await;
    let kinds: Vec<_> = page.rows.iter().map(|row| matches!(row, Row::Message(_))).collect();
    assert_eq!(kinds, [true, false, false, false, false, true]);
    let bad = page.rows.iter().filter_map(|row| match row {
        Row::Unreadable { why, .. } => Some(why.as_str()),
        _ => None,
    });
    let bad: Vec<_> = bad.collect();
    assert!(
        bad[0].contains("JSON object of strings") && bad[2] == "the topic is empty" && bad[3].contains("max_attempts"),
        "{bad:?}"
    );
}

#[tokio::test]
async fn an_expired_message_is_told_by_the_databases_clock() {
    let scratch = Scratch::new().await;
    scratch
        .run(
            "INSERT INTO outbox_message (topic, key, payload, expires_at) VALUES
                ('late', 'k', '', now() - interval '1 second'), ('in time', 'k', '', now() + interval '1 hour')",
        )
        .await;
    let mut relay = scratch.relay().await;
    let page = relay.page().await;
    assert!(matches!(&page.rows[0], Row::Expired(outgoing) if outgoing.topic == "late"));
    assert!(matches!(&page.rows[1], Row::Message(outgoing) if outgoing.topic == "in time"));
}

#[tokio::test]
async fn due_rows_leave_out_the_deliveries_that_are_not_wanted() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a")]).await;
    let mut relay = scratch.relay().await;
    let found = relay.read().await;
    let retry = Verdict::Retry {
        state: RetryState::Deferred,
        delay: Duration::ZERO,
        charged: false,
        error: "down".to_owned(),
    };
    relay.settle(&found[0], &[("up", retry.clone()), ("down", retry)]).await;
    let request = ReadRequest {
        limit: 10,
        due: true,
        skip_sinks: vec!["down".to_owned()],
        ..ReadRequest::default()
    };
    let page = relay.reader.read(request).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    assert_eq!(page.rows[0].row_ref().sink.as_deref(), Some("up"));
    assert_eq!(relay.read().await[0].row_ref.sink.as_deref(), Some("down"));
}

#[tokio::test]
async fn a_scheduled_message_comes_when_it_is_due() {
    let scratch = Scratch::new().await;
    let later = Message::bytes("later", "x/y", vec![]).delay(Duration::from_millis(400));
    scratch.emit(&[later, message("now")]).await;
    let mut relay = scratch.relay().await;
    assert_eq!(topics(&relay.read().await), ["now"]);
    let found = relay.next().await;
    assert_eq!((found[0].topic.as_str(), &found[0].row_ref.sink), ("later", &None));
    relay.deliver(&found).await;
    assert_eq!(scratch.store.backlog().await.unwrap().waiting, 0);
}

#[tokio::test]
async fn a_reader_starts_over_when_its_connection_was_cut() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a").key("k")]).await;
    let mut relay = scratch.relay().await;
    let first = relay.read().await;
    for _ in 0..4 {
        relay.read().await;
    }
    let others = connect().await;
    let schema = scratch.names.schema().unwrap();
    let kill = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%{schema}%' AND pid <> pg_backend_pid()"
    );
    others.batch_execute(&kill).await.unwrap();
    let request = || ReadRequest {
        limit: 10,
        ready: true,
        ..ReadRequest::default()
    };
    let mut failures = 0;
    let page = loop {
        match relay.reader.read(request()).await {
            Ok(page) => break page,
            Err(error) => {
                assert!(error.is_temporary(), "{error}");
                failures += 1;
                assert!(failures < 10);
            }
        }
    };
    assert!(page.rows.is_empty(), "what is in flight is still in flight");
    scratch.emit(&[message("b").key("k")]).await;
    assert_eq!(topics(&relay.read().await), ["b"]);
    assert_eq!(relay.deliver(&first).await.lost, Vec::<u16>::new());
}
