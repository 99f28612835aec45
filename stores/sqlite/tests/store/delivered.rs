use rusqlite::params;
use sendoff::store::{RelayStore, RowRef, Settlement};

use crate::outbox::{TestOutbox, TestRelay, text};

/// What is left in the ready table, by number.
fn left(outbox: &TestOutbox) -> String {
    outbox.ask("SELECT coalesce(group_concat(seq), '') FROM (SELECT seq FROM outbox_message ORDER BY seq)")
}

/// An outbox with ready messages numbered from 1, all of them read.
async fn read(count: usize) -> (TestOutbox, TestRelay, Vec<RowRef>) {
    let outbox = TestOutbox::new().await;
    let messages: Vec<_> = (0..count).map(|_| text("x")).collect();
    outbox.emit(&messages).await;
    let mut relay = outbox.relay().await;
    let row_refs = relay.read().await.iter().map(|row| row.row_ref().clone()).collect();
    (outbox, relay, row_refs)
}

async fn deliver(relay: &mut TestRelay, row_refs: &[RowRef]) {
    let settlements: Vec<Settlement> = row_refs
        .iter()
        .map(|row_ref| relay.settlement_of(row_ref, None, &[]))
        .collect();
    assert!(relay.settle_all(&settlements).await.lost.is_empty());
}

#[tokio::test]
async fn a_message_that_took_the_number_of_another_stays() {
    for count in [1_usize, 10, 64, 65, 300] {
        for taken in [1, count.div_ceil(2), count] {
            let (outbox, mut relay, row_refs) = read(count).await;
            outbox.run(&format!(
                "UPDATE outbox_message SET id = '00000000-0000-0000-0000-000000000000' WHERE seq = {taken}"
            ));
            deliver(&mut relay, &row_refs).await;
            assert_eq!(left(&outbox), taken.to_string(), "of {count}");
        }
    }
}

#[tokio::test]
async fn rows_with_gaps_between_them_go_and_those_in_the_gaps_stay() {
    let (outbox, mut relay, row_refs) = read(200).await;
    let row_refs: Vec<RowRef> = row_refs.into_iter().filter(|row_ref| row_ref.seq % 3 != 0).collect();
    deliver(&mut relay, &row_refs).await;
    let expected: Vec<String> = (1..=200)
        .filter(|seq| seq % 3 == 0)
        .map(|seq| seq.to_string())
        .collect();
    assert_eq!(left(&outbox), expected.join(","));
}

#[tokio::test]
async fn rows_that_are_gone_already_hold_up_no_other() {
    let (outbox, mut relay, row_refs) = read(100).await;
    outbox.run("DELETE FROM outbox_message WHERE seq IN (1, 50, 51, 100)");
    deliver(&mut relay, &row_refs).await;
    assert_eq!(left(&outbox), "");
    deliver(&mut relay, &row_refs).await;
}

#[tokio::test]
async fn ids_are_compared_as_they_are_written() {
    let outbox = TestOutbox::new().await;
    let plain = outbox.plain();
    let ids: [&[u8]; 5] = [
        b"0188D3B4-0000-7000-8000-00000000000A",
        b"0188d3b400007000800000000000000b",
        b"four",
        b"\xff\xfe",
        b"0188d3b4-0000-7000-8000-00000000000c",
    ];
    for id in ids {
        let insert = "INSERT INTO outbox_message (id, topic, payload) VALUES (CAST(?1 AS TEXT), 't', 'x')";
        plain.execute(insert, params![id]).unwrap();
    }
    let mut relay = outbox.relay().await;
    let row_refs: Vec<RowRef> = relay.read().await.iter().map(|row| row.row_ref().clone()).collect();
    assert_eq!(row_refs.len(), 5);

    // The same UUID, or almost the same bytes, in another spelling are another row's.
    let mut others = row_refs.clone();
    let spellings: [&[u8]; 5] = [
        b"0188d3b4-0000-7000-8000-00000000000a",
        b"0188d3b4-0000-7000-8000-00000000000b",
        b"Four",
        b"\xff\xff",
        b"0188D3B4-0000-7000-8000-00000000000C",
    ];
    for row_ref in &mut others {
        let index = usize::try_from(row_ref.seq - 1).unwrap();
        row_ref.id = sendoff::store::RowId::from_text(spellings[index]);
    }
    deliver(&mut relay, &others).await;
    assert_eq!(left(&outbox), "1,2,3,4,5");
    deliver(&mut relay, &row_refs).await;
    assert_eq!(left(&outbox), "");
}

#[tokio::test]
async fn of_two_settlements_for_one_number_the_right_one_counts() {
    let (outbox, mut relay, row_refs) = read(3).await;
    let mut others = row_refs.clone();
    for row_ref in &mut others {
        row_ref.id = sendoff::Uuid::from_u128(7).into();
    }
    for order in [
        [others.clone(), row_refs[..1].to_vec()],
        [row_refs[1..2].to_vec(), others.clone()],
    ] {
        deliver(&mut relay, &order.concat()).await;
    }
    assert_eq!(left(&outbox), "3");
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 1);
}
