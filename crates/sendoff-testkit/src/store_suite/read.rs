//! Reading: everything, once, in the order of a key.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sendoff::store::{Lane, Outgoing, Row, RowRef, Table};
use sendoff::{Message, Result, Uuid};
use tokio::time::Instant;

use super::manual_relay::{ManualRelay, message, retry};
use super::registry::{CaseResult, cases};
use super::scene::{PATIENCE, Scene, numbered, plain};

cases![
    forgotten_rows_come_again,
    settled_rows_never_come_again_even_while_they_are_settled,
    a_lane_gained_later_is_read_from_its_beginning,
    a_lane_that_was_lost_is_not_read,
    a_lane_that_was_lost_and_gained_is_read_anew,
    a_hot_lane_is_paged_through,
    a_page_has_about_as_many_rows_as_were_asked_for,
    a_page_has_as_many_bytes_as_were_asked_for_and_one_row_at_most,
    large_rows_that_wait_come_some_at_a_time,
    large_rows_do_not_starve_other_lanes,
    a_hot_lane_does_not_starve_the_others,
    rows_of_a_lane_come_in_the_order_of_their_numbers,
    only_the_tables_that_are_asked_for_are_read,
    due_rows_come_in_the_order_they_fell_due,
    deliveries_that_are_to_be_skipped_are_not_read,
    many_due_rows_are_paged_through,
];

async fn forgotten_rows_come_again(scene: Scene) -> CaseResult {
    scene.emit_key("k", 5).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(5).await;
    relay.forgotten = vec![read[1].row_ref.clone(), read[3].row_ref.clone()];
    let again = relay.read_messages(2).await;
    assert_eq!([again[0].id, again[1].id], [read[1].id, read[3].id]);
    relay.read_nothing().await;
    // The same for rows that wait.
    relay.settle_as(&retry(Duration::ZERO), &read[..1]).await?;
    let due = relay.read_messages(1).await;
    relay.forgotten = vec![due[0].row_ref.clone()];
    assert_eq!(relay.read_messages(1).await, due);
    Ok(())
}

async fn settled_rows_never_come_again_even_while_they_are_settled(scene: Scene) -> CaseResult {
    const COUNT: usize = 3000;
    let mut relay = scene.relay().await?;
    let (store, owner) = (scene.second().await?.subject.relay, relay.owner);
    let (to_settle, mut settling) = tokio::sync::mpsc::unbounded_channel::<Vec<sendoff::store::Settlement>>();
    let (settled, mut done) = tokio::sync::mpsc::unbounded_channel::<RowRef>();
    // Settles while the reads go on, so that a commit falls into the middle of a read now and then.
    let settler = tokio::spawn(async move {
        while let Some(settlements) = settling.recv().await {
            for part in settlements.chunks(7) {
                let report = store.settle(owner, part).await.expect("to settle");
                assert!(report.lost.is_empty());
                for settlement in part {
                    let _ = settled.send(settlement.row_ref.clone());
                }
            }
        }
    });
    let emitter = scene.second().await?;
    let emitting = tokio::spawn(async move {
        for chunk in 0..COUNT / 100 {
            let numbers = chunk * 100..(chunk + 1) * 100;
            emitter
                .emit(numbers.map(|n| numbered(&format!("k{}", n % 13), n)))
                .await?;
        }
        Ok::<(), sendoff::Error>(())
    });
    let (mut seen, began) = (HashSet::<Uuid>::new(), Instant::now());
    let mut quiet = 0;
    while seen.len() < COUNT || quiet < 20 {
        assert!(began.elapsed() < PATIENCE, "read {} of {COUNT}", seen.len());
        let row_refs: Vec<RowRef> = std::iter::from_fn(|| done.try_recv().ok()).collect();
        relay.note_settled(row_refs);
        let page = relay.read(150).await?;
        quiet = if page.rows.is_empty() { quiet + 1 } else { 0 };
        let read: Vec<_> = page.rows.into_iter().map(message).collect();
        for outgoing in &read {
            assert!(seen.insert(outgoing.id), "a row came twice: {:?}", outgoing.row_ref);
        }
        let settlements = read
            .iter()
            .map(|outgoing| relay.settlement(outgoing, Vec::new()))
            .collect();
        to_settle.send(settlements).expect("the settler lives");
    }
    emitting.await.expect("no panic")?;
    drop(to_settle);
    settler.await.expect("no panic");
    assert_eq!(scene.subject.relay.backlog().await?.ready, 0);
    Ok(())
}

async fn a_lane_gained_later_is_read_from_its_beginning(scene: Scene) -> CaseResult {
    let keys: Vec<String> = (0..40).map(|n| format!("k{n}")).collect();
    scene.emit(keys.iter().map(|key| numbered(key, 0))).await?;
    let mut relay = scene.idle_relay().await?;
    relay.acquire(usize::from(scene.subject.relay.lanes()) / 2).await?;
    let mut count = 0;
    let began = Instant::now();
    // Long enough for a reader to have moved far ahead in the lanes it has.
    while began.elapsed() < Duration::from_millis(1300) {
        count += relay.read(1000).await?.rows.len();
        scene.emit([numbered("k0", 1)]).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    relay.acquire(usize::MAX).await?;
    let backlog = usize::try_from(scene.subject.relay.backlog().await?.ready).expect("a small number");
    relay.read_rows(backlog - count).await;
    Ok(())
}

async fn a_lane_that_was_lost_is_not_read(scene: Scene) -> CaseResult {
    scene.emit_key("k", 3).await?;
    let mut relay = scene.relay().await?;
    let lane = relay.read_messages(3).await[0].row_ref.lane;
    relay.reader.lost(&[lane]);
    scene.emit_key("k", 3).await?;
    let other = scene.emit((0..50).map(|_| plain("t"))).await?.len();
    let of_other_lanes = |rows: Vec<Row>| rows.into_iter().filter(|row| row.row_ref().lane != lane).count();
    let (mut count, began) = (0, Instant::now());
    while began.elapsed() < Duration::from_millis(400) {
        let rows = relay.read(1000).await?.rows;
        assert!(
            rows.iter().all(|row| row.row_ref().lane != lane),
            "a lost lane was read"
        );
        count += of_other_lanes(rows);
    }
    assert!(count > 0 && count <= other);
    Ok(())
}

async fn a_lane_that_was_lost_and_gained_is_read_anew(scene: Scene) -> CaseResult {
    scene.emit_key("k", 3).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(3).await;
    relay.release(&[read[0].row_ref.lane]).await?;
    relay.acquire(usize::MAX).await?;
    assert_eq!(relay.read_messages(3).await, read);
    Ok(())
}

async fn a_hot_lane_is_paged_through(scene: Scene) -> CaseResult {
    const COUNT: usize = 5000;
    let ids = scene.emit_key("hot", COUNT).await?;
    let mut relay = scene.relay().await?;
    let (mut read, mut pages) = (Vec::new(), 0);
    loop {
        let page = relay.read(400).await?;
        pages += 1;
        assert!(
            page.rows.len() <= 2000,
            "a page of {} rows when 400 were asked for",
            page.rows.len()
        );
        assert!(
            !page.rows.is_empty() || !page.more || pages < 1000,
            "there is always more, and it never comes"
        );
        let more = page.more || !page.rows.is_empty();
        read.extend(page.rows.into_iter().map(|row| message(row).id));
        if !more {
            break;
        }
    }
    assert_eq!(read.len(), COUNT);
    assert_eq!(read, ids);
    Ok(())
}

async fn a_page_has_about_as_many_rows_as_were_asked_for(scene: Scene) -> CaseResult {
    scene.emit((0..3000).map(|_| plain("t"))).await?;
    let mut relay = scene.relay().await?;
    let lanes = usize::from(scene.subject.relay.lanes());
    // The relay asks for few when payloads are large, and when it has much in flight: memory is what it counts on.
    for limit in [20, 100, 500] {
        for _ in 0..3 {
            let rows = relay.read(limit).await?.rows.len();
            assert!(
                rows > 0 && rows <= 2 * limit + lanes,
                "{rows} rows, and {limit} were asked for"
            );
        }
    }
    Ok(())
}

/// A message with as many bytes, most of them in its headers if that is asked for.
fn large(key: &str, bytes: usize, in_headers: bool) -> Message {
    let headers = if in_headers { bytes.min(60_000) } else { 0 };
    let message = Message::bytes("large", "text/plain", vec![b'x'; bytes - headers]).key(key);
    if in_headers {
        message.header("x", "y".repeat(headers))
    } else {
        message
    }
}

/// Reads everything in pages of so many bytes, and fails when one has more than those and one row.
async fn read_by_bytes(relay: &mut ManualRelay, bytes: usize, count: usize, tables: (bool, bool)) -> Result<Vec<Row>> {
    relay.bytes = bytes;
    let (mut rows, began) = (Vec::new(), Instant::now());
    while rows.len() < count {
        assert!(began.elapsed() < PATIENCE, "read {} of {count}", rows.len());
        let page = relay.read_tables(1000, tables.0, tables.1).await?;
        let mut sizes: Vec<usize> = page.rows.iter().map(Row::bytes).collect();
        // Whichever came last: it is one of them.
        sizes.sort_unstable();
        sizes.pop();
        let sum: usize = sizes.iter().sum();
        assert!(sum < bytes, "{sum} bytes and one row, and {bytes} were asked for");
        rows.extend(page.rows);
    }
    assert_eq!(rows.len(), count);
    Ok(rows)
}

async fn a_page_has_as_many_bytes_as_were_asked_for_and_one_row_at_most(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    // The relay knows small ones so far.
    scene
        .emit((0..100).map(|n| numbered(&format!("k{}", n % 9), n)))
        .await?;
    let small = relay.read_messages(100).await;
    let sizes = [3, 40_000, 100, 40_000, 300_000, 40_000, 7, 90_000];
    let messages = (0..80).map(|n| large(&format!("k{}", n % 9), sizes[n % 8], n % 3 == 0));
    let emitted = scene.emit(messages).await?;
    let rows = read_by_bytes(&mut relay, 200_000, 80, (true, false)).await?;
    let mut read: BTreeMap<String, Vec<Uuid>> = BTreeMap::new();
    for outgoing in rows.into_iter().map(message) {
        read.entry(outgoing.key.clone().unwrap_or_default())
            .or_default()
            .push(outgoing.id);
    }
    for (n, of_key) in read {
        let at: usize = n[1..].parse().expect("a number");
        let expected: Vec<Uuid> = emitted.iter().skip(at).step_by(9).map(|emitted| emitted.id()).collect();
        assert_eq!(of_key, expected, "the order of {n}");
    }
    relay.read_nothing().await;
    relay.forgotten = small.iter().map(|outgoing| outgoing.row_ref.clone()).collect();
    assert_eq!(relay.read_messages(100).await.len(), small.len());
    Ok(())
}

async fn large_rows_that_wait_come_some_at_a_time(scene: Scene) -> CaseResult {
    scene
        .emit((0..30).map(|n| large(&format!("k{n}"), 50_000, n % 2 == 0)))
        .await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(30).await;
    relay.settle_as(&retry(Duration::ZERO), &read).await?;
    let rows = read_by_bytes(&mut relay, 120_000, 30, (false, true)).await?;
    let ids: HashSet<Uuid> = rows.into_iter().map(|row| message(row).id).collect();
    assert_eq!(ids, read.iter().map(|outgoing| outgoing.id).collect());
    Ok(())
}

async fn large_rows_do_not_starve_other_lanes(scene: Scene) -> CaseResult {
    scene
        .emit((0..60).map(|n| large(&format!("k{n}"), 60_000, false)))
        .await?;
    let mut relay = scene.relay().await?;
    relay.bytes = 100_000;
    let mut lanes: HashSet<Lane> = HashSet::new();
    let mut reads = 0;
    // What was read is settled at once and made anew, so that the lanes never run dry.
    while lanes.len() < 10 {
        reads += 1;
        assert!(reads < 200, "only these lanes were read: {lanes:?}");
        let page = relay.read(1000).await?;
        let read: Vec<Outgoing> = page.rows.into_iter().map(message).collect();
        lanes.extend(read.iter().map(|outgoing| outgoing.row_ref.lane));
        let again = read
            .iter()
            .map(|outgoing| large(outgoing.key.as_deref().unwrap_or_default(), 60_000, false));
        scene.emit(again.collect::<Vec<_>>()).await?;
        relay.deliver(&read).await?;
    }
    Ok(())
}

async fn a_hot_lane_does_not_starve_the_others(scene: Scene) -> CaseResult {
    scene.emit_key("hot", 2000).await?;
    let cold = scene.emit((0..20).map(|n| numbered(&format!("cold{n}"), n))).await?;
    let mut relay = scene.relay().await?;
    let mut missing: HashSet<Uuid> = cold.into_iter().map(sendoff::Emitted::id).collect();
    // The hot key grows as fast as it is read, and never ends.
    for _ in 0..20 {
        for row in relay.read(300).await?.rows {
            missing.remove(&message(row).id);
        }
        scene.emit_key("hot", 300).await?;
    }
    assert!(missing.is_empty(), "{} of 20 other keys were not read", missing.len());
    Ok(())
}

async fn rows_of_a_lane_come_in_the_order_of_their_numbers(scene: Scene) -> CaseResult {
    scene
        .emit((0..1000).map(|n| numbered(&format!("k{}", n % 30), n)))
        .await?;
    let mut relay = scene.relay().await?;
    let mut last = BTreeMap::<Lane, i64>::new();
    for row in relay.read_rows(1000).await {
        let row_ref = row.row_ref();
        let before = last.insert(row_ref.lane, row_ref.seq);
        assert!(
            before.is_none_or(|before| before < row_ref.seq),
            "{row_ref:?} came after {before:?}"
        );
    }
    Ok(())
}

async fn only_the_tables_that_are_asked_for_are_read(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    scene.emit([plain("waits")]).await?;
    let read = relay.read_messages(1).await;
    relay.settle_as(&retry(Duration::ZERO), &read).await?;
    scene.emit([plain("ready")]).await?;
    assert!(relay.read_tables(10, false, false).await?.rows.is_empty());
    let mut rows = Vec::new();
    for (ready, due, table) in [(true, false, Table::Ready), (false, true, Table::Waiting)] {
        rows.extend(relay.read_tables(10, ready, due).await?.rows);
        assert_eq!(rows.pop().map(|row| row.row_ref().table), Some(table));
        assert!(rows.is_empty());
    }
    Ok(())
}

async fn due_rows_come_in_the_order_they_fell_due(scene: Scene) -> CaseResult {
    scene.emit((0..9).map(|n| numbered(&format!("k{n}"), n))).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(9).await;
    let number = |outgoing: &sendoff::Outgoing| {
        String::from_utf8_lossy(&outgoing.payload)
            .parse::<u64>()
            .expect("a number")
    };
    let mut due_at = Vec::new();
    for outgoing in &read {
        // The last one is due first.
        let delay = Duration::from_millis((9 - number(outgoing)) * 15);
        relay.settle_as(&retry(delay), std::slice::from_ref(outgoing)).await?;
        due_at.push((scene.find_one(outgoing.id).await?.due_at, outgoing.id));
    }
    due_at.sort();
    tokio::time::sleep(Duration::from_millis(9 * 15 + 50)).await;
    let due: Vec<Uuid> = relay
        .read_messages(9)
        .await
        .iter()
        .map(|outgoing| outgoing.id)
        .collect();
    assert_eq!(due, due_at.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
    Ok(())
}

async fn deliveries_that_are_to_be_skipped_are_not_read(scene: Scene) -> CaseResult {
    use super::manual_relay::sink;
    scene.emit([plain("t")]).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    let deliveries = ["a", "b", "c"].map(|name| sink(name, retry(Duration::ZERO)));
    relay.settle(&[relay.settlement(&read[0], deliveries.to_vec())]).await?;
    scene.emit([plain("scheduled").delay(Duration::from_millis(1))]).await?;
    relay.skip_sinks = vec!["a".into(), "c".into()];
    let mut names: Vec<Option<String>> = relay
        .read_messages(2)
        .await
        .into_iter()
        .map(|outgoing| outgoing.row_ref.sink.map(|sink| sink.to_string()))
        .collect();
    names.sort();
    // What is not routed yet is not for a sink that is down.
    assert_eq!(names, [None, Some("b".to_owned())]);
    relay.skip_sinks.clear();
    relay.read_messages(2).await;
    Ok(())
}

async fn many_due_rows_are_paged_through(scene: Scene) -> CaseResult {
    const COUNT: usize = 700;
    scene.emit((0..COUNT).map(|n| numbered(&format!("k{n}"), n))).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(COUNT).await;
    relay.settle_as(&retry(Duration::ZERO), &read).await?;
    let (mut seen, began) = (HashSet::new(), Instant::now());
    // Nothing is settled: what is in flight must not hide what is not.
    while seen.len() < COUNT {
        let page = relay.read_tables(50, false, true).await?;
        assert!(began.elapsed() < PATIENCE, "read {} of {COUNT}", seen.len());
        for row in page.rows {
            assert!(seen.insert(row.row_ref().clone()));
        }
    }
    Ok(())
}
