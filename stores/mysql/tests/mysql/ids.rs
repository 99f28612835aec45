//! Ids of any spelling: a row is found again by the id that it has.

use std::time::Duration;

use sendoff::store::{
    DeadReason, DeliverySettlement, OperateStore, RelayStore, RetryState, Row, RowId, Settlement, Verdict, WorkStore,
};

use crate::scratch::{LEASE, Relay, Scratch, message};

/// As other languages write them, and what is none at all. CHAR columns keep no spaces at the end.
const SPELLINGS: [(&str, &str); 6] = [
    (
        "0198C0DE-0000-7000-8000-00000000ABCD",
        "0198C0DE-0000-7000-8000-00000000ABCD",
    ),
    (
        "0198c0de-0000-7000-8000-00000000abce",
        "0198c0de-0000-7000-8000-00000000abce",
    ),
    ("0198C0de000070008000000000000abc", "0198C0de000070008000000000000abc"),
    ("seven", "seven"),
    ("Eight  ", "Eight"),
    (" n'i\"n\\e", " n'i\"n\\e"),
];

async fn insert(scratch: &Scratch) {
    for (id, _) in SPELLINGS {
        let id: String = id.bytes().map(|byte| format!("{byte:02X}")).collect();
        scratch
            .run(&format!(
                "INSERT INTO outbox_message (id, topic, payload, `key`) \
                 VALUES (CONVERT(UNHEX('{id}') USING ascii), 't', 'x', 'k')"
            ))
            .await;
    }
}

fn settlements(relay: &Relay, rows: &[Row], verdict: &Verdict, attempts: u32) -> Vec<Settlement> {
    let settlement = |row: &Row| {
        let row_ref = row.row_ref().clone();
        Settlement {
            epoch: relay
                .grants
                .iter()
                .find(|grant| grant.lane == row_ref.lane)
                .unwrap()
                .epoch,
            deliveries: vec![DeliverySettlement {
                sink: "sink".into(),
                verdict: verdict.clone(),
            }],
            key: Some("k".into()),
            attempts,
            row_ref,
        }
    };
    rows.iter().map(settlement).collect()
}

#[tokio::test]
async fn rows_are_settled_whatever_their_id_is() {
    let scratch = Scratch::new().await;
    let mut relay = scratch.relay().await;
    let store = scratch.store.clone();
    let all = SPELLINGS.len() as u64;
    let expected: Vec<RowId> = SPELLINGS
        .iter()
        .map(|(_, kept)| RowId::from_text(kept.as_bytes()))
        .collect();
    let retry = Verdict::Retry {
        state: RetryState::Parked,
        delay: Duration::ZERO,
        charged: true,
        error: "no".to_owned(),
    };
    let dead = Verdict::Dead {
        reason: DeadReason::Unreadable,
        error: "no".to_owned(),
        charged: false,
        blocks: true,
    };
    insert(&scratch).await;
    let page = relay.page(100).await;
    let mut ids: Vec<RowId> = page.rows.iter().map(|row| row.row_ref().id.clone()).collect();
    assert_eq!(ids, expected);
    // From the ready table to the waiting one, and back into hand.
    store
        .settle(relay.owner, &settlements(&relay, &page.rows, &retry, 0))
        .await
        .unwrap();
    let backlog = store.backlog().await.unwrap();
    assert_eq!((backlog.ready, backlog.due + backlog.waiting), (0, all), "{backlog:?}");
    let page = relay.page(100).await;
    ids = page.rows.iter().map(|row| row.row_ref().id.clone()).collect();
    assert_eq!(ids, expected);
    // Once more, now where they are.
    store
        .settle(relay.owner, &settlements(&relay, &page.rows, &retry, 1))
        .await
        .unwrap();
    assert_eq!(
        scratch
            .value("SELECT CAST(sum(attempts) AS CHAR) FROM outbox_waiting")
            .await,
        (2 * all).to_string()
    );
    // To the dead letters, which an operator brings back.
    store
        .settle(relay.owner, &settlements(&relay, &page.rows, &dead, 2))
        .await
        .unwrap();
    assert_eq!(store.backlog().await.unwrap().dead, all);
    assert_eq!(store.release_key("k", None, "operator").await.unwrap(), all);
    let mut command = sendoff::store::Command::by("operator");
    let back = store
        .retry_dead(&Default::default(), None, 100, &mut command)
        .await
        .unwrap();
    assert_eq!(back, all);
    // And away.
    store
        .settle(relay.owner, &settlements(&relay, &page.rows, &Verdict::Delivered, 0))
        .await
        .unwrap();
    assert_eq!(store.backlog().await.unwrap(), Default::default());
    insert(&scratch).await;
    let page = relay.page(100).await;
    store
        .settle(relay.owner, &settlements(&relay, &page.rows, &Verdict::Delivered, 0))
        .await
        .unwrap();
    assert_eq!(store.backlog().await.unwrap(), Default::default());
}

/// After a failover that lost the last hand-outs, a counter would give out their numbers again.
#[tokio::test]
async fn a_hand_out_that_was_lost_is_never_taken_for_another() {
    let scratch = Scratch::new().await;
    let store = &scratch.store;
    let mut tx = store.begin_jobs().await.unwrap();
    tx.emit(&[message("job")]).await.unwrap();
    tx.commit().await.unwrap();
    let lost = store.claim_batch("w", 1, LEASE).await.unwrap().remove(0).claim;
    scratch
        .run("UPDATE outbox_job SET state = 'pending', claim = 0, attempts = 0, next_attempt_at = UTC_TIMESTAMP(6)")
        .await;
    let held = store.claim_batch("w", 1, LEASE).await.unwrap().remove(0).claim;
    assert_eq!(lost.seq, held.seq);
    assert!(lost.number > 0 && held.number > 0 && lost.number != held.number);
    assert_eq!(store.mark_success("w", &[lost]).await.unwrap(), [lost]);
    assert_eq!(store.mark_success("w", &[held]).await.unwrap(), []);
}
