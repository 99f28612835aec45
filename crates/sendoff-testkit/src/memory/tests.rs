//! What the store in memory has beyond the conformance suite: its clock, its faults, its audit.

use std::time::Duration;

use sendoff::store::{
    Command, DeadReason, DeliverySettlement, EmitStore, EmitTransaction, Filter, OperateStore, OwnerId, ReadRequest,
    RelayCard, RelayStore, Row, Settlement, Verdict,
};
use sendoff::{ErrorKind, Message};

use super::{MemoryStore, Verb};

const LEASE: Duration = Duration::from_secs(10);

async fn emit(store: &MemoryStore, key: &str) -> Message {
    let message = Message::json("t", "payload").unwrap().key(key);
    let mut tx = store.begin().await.unwrap();
    tx.emit(std::slice::from_ref(&message)).await.unwrap();
    tx.commit().await.unwrap();
    message
}

async fn relay(store: &MemoryStore) -> OwnerId {
    let owner = OwnerId::random();
    store.register(owner, &RelayCard::named("test"), LEASE).await.unwrap();
    owner
}

/// Reads everything and says that all of it was delivered.
async fn deliver_all(store: &MemoryStore, owner: OwnerId) -> usize {
    let grants = store.acquire(owner, usize::MAX).await.unwrap();
    let mut reader = store.reader();
    reader.gained(&grants);
    let request = ReadRequest {
        limit: 100,
        ready: true,
        due: true,
        ..ReadRequest::default()
    };
    let page = reader.read(request).await.unwrap();
    let settlements: Vec<Settlement> = page
        .rows
        .iter()
        .map(|row| settlement(row, &grants, Vec::new()))
        .collect();
    store.settle(owner, &settlements).await.unwrap();
    store
        .release(owner, &grants.iter().map(|grant| grant.lane).collect::<Vec<_>>())
        .await
        .unwrap();
    settlements.len()
}

fn settlement(row: &Row, grants: &[sendoff::store::LaneGrant], deliveries: Vec<DeliverySettlement>) -> Settlement {
    let row_ref = row.row_ref().clone();
    let grant = grants.iter().find(|grant| grant.lane == row_ref.lane).unwrap();
    Settlement {
        epoch: grant.epoch,
        deliveries,
        key: None,
        attempts: 0,
        row_ref,
    }
}

#[tokio::test(start_paused = true)]
async fn paused_time_drives_leases() {
    let store = MemoryStore::new();
    let owner = relay(&store).await;
    store.acquire(owner, 3).await.unwrap();
    tokio::time::advance(LEASE - Duration::from_millis(1)).await;
    assert_eq!(store.evict().await.unwrap(), 0);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(store.evict().await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_the_store_can_be_shifted() {
    let store = MemoryStore::new();
    let owner = relay(&store).await;
    store.shift_clock(LEASE);
    assert!(!store.heartbeat(owner, LEASE).await.unwrap().alive);
}

#[tokio::test]
async fn a_relay_can_be_evicted_before_its_time() {
    let store = MemoryStore::new();
    let owner = relay(&store).await;
    let lanes = store.acquire(owner, usize::MAX).await.unwrap().len() as u64;
    assert_eq!(store.evict_now(), lanes);
    let error = store.acquire(owner, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
}

#[tokio::test]
async fn a_forgotten_settlement_leaves_the_message() {
    let store = MemoryStore::new();
    let owner = relay(&store).await;
    emit(&store, "k").await;
    store.faults().lose_settles(1);
    assert_eq!(deliver_all(&store, owner).await, 1);
    assert_eq!(store.backlog().await.unwrap().ready, 1);
    assert_eq!(deliver_all(&store, owner).await, 1);
    assert_eq!(store.backlog().await.unwrap().ready, 0);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_has_happened() {
    let store = MemoryStore::new();
    for (fault, ready) in [(Verb::Begin, 1), (Verb::Commit, 1)] {
        store.faults().clear();
        store.faults().lose_answers(fault, 1);
        let mut tx = Box::new(store.transaction().await.unwrap());
        tx.emit(&[Message::json("t", "p").unwrap()]).await.unwrap();
        let outcome = EmitTransaction::commit(tx).await;
        assert_eq!(outcome.is_err(), fault == Verb::Commit);
        assert_eq!(store.backlog().await.unwrap().ready, ready);
        let owner = relay(&store).await;
        deliver_all(&store, owner).await;
        store.deregister(owner).await.unwrap();
    }
}

#[tokio::test]
async fn a_commit_that_fails_leaves_nothing() {
    let store = MemoryStore::new();
    store.faults().fail(Verb::Commit, 1);
    let mut tx = store.begin().await.unwrap();
    tx.emit(&[Message::json("t", "p").unwrap()]).await.unwrap();
    assert_eq!(tx.commit().await.unwrap_err().kind(), ErrorKind::Unreachable);
    assert_eq!(store.backlog().await.unwrap().ready, 0);
}

#[tokio::test]
async fn an_outbox_emits_into_its_transaction() {
    let store = MemoryStore::new();
    let mut tx = store.transaction().await.unwrap();
    let outbox = store.outbox().clone();
    let _ = outbox.emit(&mut tx, Message::json("t", "p").unwrap()).await.unwrap();
    Box::new(tx).commit().await.unwrap();
    assert_eq!(store.backlog().await.unwrap().ready, 1);
}

#[tokio::test(start_paused = true)]
async fn two_transactions_that_wait_for_each_other_end() {
    let store = MemoryStore::new();
    let once = |key: &str| [Message::json("t", "p").unwrap().idempotency_key(key)];
    let (mut one, mut other) = (store.begin().await.unwrap(), store.begin().await.unwrap());
    one.emit(&once("a")).await.unwrap();
    other.emit(&once("b")).await.unwrap();
    let (a, b) = (once("a"), once("b"));
    let (first, second) = tokio::join!(one.emit(&b), other.emit(&a));
    for outcome in [first, second] {
        assert!(outcome.is_err());
    }
}

#[tokio::test]
async fn retried_dead_letters_leave_an_audit_row() {
    let store = MemoryStore::new();
    let owner = relay(&store).await;
    let message = emit(&store, "k").await;
    let grants = store.acquire(owner, usize::MAX).await.unwrap();
    let mut reader = store.reader();
    reader.gained(&grants);
    let request = ReadRequest {
        limit: 1,
        ready: true,
        ..ReadRequest::default()
    };
    let page = reader.read(request).await.unwrap();
    let dead = DeliverySettlement {
        sink: "sink".into(),
        verdict: Verdict::Dead {
            reason: DeadReason::Permanent,
            error: "no".into(),
            charged: true,
            blocks: false,
        },
    };
    store
        .settle(owner, &[settlement(&page.rows[0], &grants, vec![dead])])
        .await
        .unwrap();
    let filter = Filter {
        ids: vec![message.id()],
        ..Filter::default()
    };
    assert_eq!(
        store
            .retry_dead(&filter, None, usize::MAX, &mut Command::by("ann"))
            .await
            .unwrap(),
        1
    );
    let audits = store.audits();
    assert_eq!(
        (audits[0].who.as_str(), audits[0].action.as_str(), audits[0].affected),
        ("ann", "dead retry", 1)
    );
    assert_eq!(serde_json::from_str::<Filter>(&audits[0].filter).unwrap(), filter);
}
