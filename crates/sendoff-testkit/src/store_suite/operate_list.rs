//! What lists are made of: the next number of a table, the rows of some numbers, and the rows by the time when they ended.

use sendoff::Uuid;
use sendoff::store::{Direction, EndedAt, Filter, ListTable, Status, Stored};

use super::manual_relay::sink;
use super::operate::verdict;
use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered, plain};

cases![
    numbers_are_found_in_both_directions,
    rows_are_looked_at_by_number_in_both_directions,
    what_does_not_match_is_counted_and_not_returned,
    rows_are_looked_at_by_the_time_when_they_ended,
    a_message_keeps_its_number_in_every_table,
];

const BOTH: [Direction; 2] = [Direction::NewestFirst, Direction::OldestFirst];

fn ids(rows: &[Stored]) -> Vec<Uuid> {
    rows.iter().map(|row| row.id.expect("an id")).collect()
}

/// Ready messages of several keys and of none, so that they are in several lanes.
async fn ready(scene: &Scene, count: usize) -> sendoff::Result<Vec<Stored>> {
    for n in 0..count {
        let message = if n % 3 == 0 {
            plain("plain")
        } else {
            numbered(&format!("k{n}"), n)
        };
        scene.emit([message]).await?;
    }
    let all = 0..=i64::MAX;
    let looked = scene
        .subject
        .operate
        .look(ListTable::Ready, &Filter::default(), all, Direction::OldestFirst, 1000)
        .await?;
    assert_eq!(looked.rows, count as u64);
    Ok(looked.messages)
}

async fn numbers_are_found_in_both_directions(scene: Scene) -> CaseResult {
    let operate = &scene.subject.operate;
    for table in ListTable::ALL {
        for direction in BOTH {
            assert_eq!(operate.next_number(table, 7, direction).await?, None, "{table:?}");
        }
    }
    let rows = ready(&scene, 20).await?;
    let numbers: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    for pair in numbers.windows(2) {
        let up = operate
            .next_number(ListTable::Ready, pair[0] + 1, Direction::OldestFirst)
            .await?;
        let down = operate
            .next_number(ListTable::Ready, pair[1] - 1, Direction::NewestFirst)
            .await?;
        let same = operate
            .next_number(ListTable::Ready, pair[1], Direction::NewestFirst)
            .await?;
        assert_eq!((up, down, same), (Some(pair[1]), Some(pair[0]), Some(pair[1])));
    }
    let (first, last) = (numbers[0], numbers[19]);
    assert_eq!(
        operate
            .next_number(ListTable::Ready, first - 1, Direction::NewestFirst)
            .await?,
        None
    );
    assert_eq!(
        operate
            .next_number(ListTable::Ready, last + 1, Direction::OldestFirst)
            .await?,
        None
    );
    assert_eq!(
        operate
            .next_number(ListTable::Ready, i64::MAX, Direction::NewestFirst)
            .await?,
        Some(last)
    );
    Ok(())
}

async fn rows_are_looked_at_by_number_in_both_directions(scene: Scene) -> CaseResult {
    let operate = &scene.subject.operate;
    let rows = ready(&scene, 12).await?;
    let numbers = rows[2].seq..=rows[8].seq;
    let mut expected = ids(&rows[2..=8]);
    for direction in [Direction::OldestFirst, Direction::NewestFirst] {
        let looked = operate
            .look(ListTable::Ready, &Filter::default(), numbers.clone(), direction, 100)
            .await?;
        assert_eq!((ids(&looked.messages), looked.rows), (expected.clone(), 7));
        assert_eq!(looked.oldest, rows[2..=8].iter().map(|row| row.created_at).min());
        assert_eq!(looked.newest, rows[2..=8].iter().map(|row| row.created_at).max());
        let some = operate
            .look(ListTable::Ready, &Filter::default(), numbers.clone(), direction, 3)
            .await?;
        assert_eq!((ids(&some.messages), some.rows), (expected[..3].to_vec(), 7));
        expected.reverse();
    }
    let none = operate
        .look(ListTable::Dead, &Filter::default(), numbers, Direction::NewestFirst, 9)
        .await?;
    assert_eq!((none.messages.len(), none.rows, none.oldest), (0, 0, None));
    Ok(())
}

async fn what_does_not_match_is_counted_and_not_returned(scene: Scene) -> CaseResult {
    let rows = ready(&scene, 9).await?;
    let filter = Filter {
        topic: Some("plain".to_owned()),
        ..Filter::default()
    };
    let looked = scene
        .subject
        .operate
        .look(ListTable::Ready, &filter, 0..=i64::MAX, Direction::OldestFirst, 2)
        .await?;
    assert_eq!(
        ids(&looked.messages),
        [rows[0].id.expect("an id"), rows[3].id.expect("an id")]
    );
    assert_eq!(looked.rows, 9);
    Ok(())
}

async fn rows_are_looked_at_by_the_time_when_they_ended(scene: Scene) -> CaseResult {
    let operate = &scene.subject.operate;
    let mut relay = scene.relay().await?;
    scene.emit((0..6).map(|n| plain(&format!("t{}", n % 2)))).await?;
    // They die in the opposite order, so that the order of numbers is another.
    let mut messages = relay.read_messages(6).await;
    messages.sort_by_key(|message| std::cmp::Reverse(message.row_ref.seq));
    let mut died = Vec::new();
    for message in messages {
        died.push(message.id);
        let deliveries = vec![sink("a", verdict("error", true))];
        relay.settle(&[relay.settlement(&message, deliveries)]).await?;
        tokio::time::sleep(super::scene::TICK).await;
    }
    let all = Filter::default();
    let by_end = |from, direction, rows| operate.look_ended(ListTable::Dead, &all, from, direction, rows, 100);
    let looked = by_end(None, Direction::OldestFirst, 100).await?;
    assert_eq!((ids(&looked.messages), looked.rows), (died.clone(), 6));
    let place = |row: &Stored| EndedAt {
        at: row.ended_at.expect("a time"),
        seq: row.seq,
    };
    assert_eq!(looked.last, looked.messages.last().map(place));
    let some = by_end(None, Direction::OldestFirst, 4).await?;
    assert_eq!((ids(&some.messages), some.rows), (died[..4].to_vec(), 4));
    let rest = by_end(some.last, Direction::OldestFirst, 4).await?;
    assert_eq!(
        (ids(&rest.messages), rest.rows),
        (died[3..].to_vec(), 3),
        "the row itself is included"
    );
    died.reverse();
    let back = by_end(None, Direction::NewestFirst, 4).await?;
    assert_eq!((ids(&back.messages), back.rows), (died[..4].to_vec(), 4));
    let rest = by_end(back.last, Direction::NewestFirst, 4).await?;
    assert_eq!((ids(&rest.messages), rest.rows), (died[3..].to_vec(), 3));
    let filter = Filter {
        topic: Some("t0".to_owned()),
        ..Filter::default()
    };
    let some = operate
        .look_ended(ListTable::Dead, &filter, None, Direction::NewestFirst, 4, 100)
        .await?;
    assert_eq!(
        (some.messages.len(), some.rows),
        (2, 4),
        "rows that do not match were looked at, too"
    );
    let nothing = operate
        .look_ended(ListTable::Ready, &all, None, Direction::NewestFirst, 4, 100)
        .await?;
    assert_eq!((nothing.rows, nothing.last), (0, None));
    Ok(())
}

async fn a_message_keeps_its_number_in_every_table(scene: Scene) -> CaseResult {
    let operate = &scene.subject.operate;
    let rows = ready(&scene, 3).await?;
    let mut relay = scene.relay().await?;
    for message in relay.read_messages(3).await {
        let deliveries = vec![sink("a", verdict("503", false)), sink("b", verdict("404", true))];
        relay.settle(&[relay.settlement(&message, deliveries)]).await?;
    }
    for (table, status) in [(ListTable::Waiting, Status::Retry), (ListTable::Dead, Status::Dead)] {
        let looked = operate
            .look(table, &Filter::default(), 0..=i64::MAX, Direction::NewestFirst, 9)
            .await?;
        let found: Vec<(i64, Option<Uuid>)> = looked.messages.iter().map(|row| (row.seq, row.id)).collect();
        let expected: Vec<(i64, Option<Uuid>)> = rows.iter().rev().map(|row| (row.seq, row.id)).collect();
        assert_eq!(found, expected);
        assert!(
            looked
                .messages
                .iter()
                .all(|row| row.status == status && row.sink.len() == 1)
        );
        let last = operate.next_number(table, i64::MAX, Direction::NewestFirst).await?;
        assert_eq!(last, rows.last().map(|row| row.seq));
    }
    Ok(())
}
