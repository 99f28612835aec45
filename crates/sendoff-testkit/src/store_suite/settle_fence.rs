//! The fence: a relay that lost a lane changes nothing in it.

use std::time::Duration;

use sendoff::store::{DeadReason, DeliverySettlement, Lane, Settlement, Status, Stored, Table, Verdict};
use sendoff::{Outgoing, Uuid};

use super::Setup;
use super::manual_relay::{ManualRelay, dead, retry, sink};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered};

cases![
    a_stale_relay_cannot_settle_anything,
    a_stale_relay_cannot_settle_anything_where_there_is_a_retention with Setup { keep_delivered: true, ..Setup::PLAIN },
    a_relay_whose_lease_ran_out_cannot_settle_even_if_nobody_noticed,
    a_relay_that_never_registered_cannot_settle,
    a_settlement_with_an_old_epoch_is_refused,
    a_settlement_with_an_epoch_to_come_is_refused,
    a_lost_lane_does_not_stop_the_others,
    a_stale_relay_and_its_successor_do_not_both_settle,
];

const DELIVERY: &str = "sink";

/// Everything that a settlement can ask for.
fn verdicts() -> Vec<Vec<DeliverySettlement>> {
    vec![
        vec![],
        vec![sink(DELIVERY, Verdict::Delivered)],
        vec![sink(DELIVERY, retry(Duration::ZERO))],
        vec![sink(DELIVERY, Verdict::Blocked)],
        vec![sink(DELIVERY, dead(DeadReason::Permanent, true))],
    ]
}

/// A relay that has rows of each kind in flight: ready, waiting for a delivery, and not routed yet.
async fn in_flight(scene: &Scene) -> sendoff::Result<(ManualRelay, Vec<Outgoing>)> {
    let keys = || (0..verdicts().len()).map(|n| format!("k{n}"));
    scene.emit(keys().map(|key| numbered(&key, 0))).await?;
    let mut relay = scene.relay().await?;
    let first = relay.read_messages(verdicts().len()).await;
    relay.settle_as(&retry(Duration::ZERO), &first).await?;
    scene
        .emit(keys().map(|key| numbered(&format!("ready {key}"), 1)))
        .await?;
    scene
        .emit(keys().map(|key| numbered(&format!("unrouted {key}"), 2).delay(Duration::from_millis(1))))
        .await?;
    let read = relay.read_messages(3 * verdicts().len()).await;
    assert_eq!(
        read.iter()
            .filter(|outgoing| outgoing.row_ref.table == Table::Waiting)
            .count(),
        2 * verdicts().len()
    );
    Ok((relay, read))
}

/// What is left of them.
async fn rows(scene: &Scene, read: &[Outgoing]) -> sendoff::Result<Vec<Stored>> {
    let mut rows = Vec::new();
    for outgoing in read {
        let found = scene.subject.operate.find(outgoing.id).await?;
        rows.extend(found.into_iter().filter(|stored| stored.status != Status::Delivered));
    }
    Ok(rows)
}

fn lanes(settlements: &[Settlement]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = settlements.iter().map(|settlement| settlement.row_ref.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// Settles everything in every way, together and one by one, and checks that nothing happens.
async fn settles_in_vain(scene: &Scene, relay: &mut ManualRelay, read: &[Outgoing]) -> CaseResult {
    let before = rows(scene, read).await?;
    assert_eq!(before.len(), read.len());
    for deliveries in verdicts() {
        let all: Vec<Settlement> = read
            .iter()
            .map(|outgoing| relay.settlement(outgoing, deliveries.clone()))
            .collect();
        let mut lost = relay.settle(&all).await?.lost;
        lost.sort_unstable();
        assert_eq!(lost, lanes(&all), "{deliveries:?}");
        for one in &all {
            let report = relay.settle(std::slice::from_ref(one)).await?;
            assert_eq!(report.lost, [one.row_ref.lane], "{deliveries:?}");
            assert!(report.freed.is_empty() && !report.woke);
        }
        assert_eq!(rows(scene, read).await?, before, "{deliveries:?}");
    }
    Ok(())
}

async fn a_stale_relay_cannot_settle_anything(scene: Scene) -> CaseResult {
    let (mut stale, read) = in_flight(&scene).await?;
    let mut next = scene.second().await?.idle_relay().await?;
    stale.vanish(&next).await?;
    next.store.evict().await?;
    // Free, and then another's.
    settles_in_vain(&scene, &mut stale, &read).await?;
    next.acquire(usize::MAX).await?;
    settles_in_vain(&scene, &mut stale, &read).await?;
    // Its successor has all of it.
    let again = next.read_messages(read.len()).await;
    next.deliver(&again).await?;
    assert!(rows(&scene, &read).await?.is_empty());
    Ok(())
}

async fn a_stale_relay_cannot_settle_anything_where_there_is_a_retention(scene: Scene) -> CaseResult {
    a_stale_relay_cannot_settle_anything(scene).await
}

async fn a_relay_whose_lease_ran_out_cannot_settle_even_if_nobody_noticed(scene: Scene) -> CaseResult {
    let (mut stale, read) = in_flight(&scene).await?;
    let witness = scene.idle_relay().await?;
    stale.vanish(&witness).await?;
    settles_in_vain(&scene, &mut stale, &read).await
}

async fn a_relay_that_never_registered_cannot_settle(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene).await?;
    relay.owner = sendoff::store::OwnerId::random();
    settles_in_vain(&scene, &mut relay, &read).await
}

async fn a_settlement_with_an_old_epoch_is_refused(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene).await?;
    let old = relay.epochs.clone();
    relay.release(&relay.lanes()).await?;
    relay.acquire(usize::MAX).await?;
    let new = std::mem::replace(&mut relay.epochs, old);
    settles_in_vain(&scene, &mut relay, &read).await?;
    relay.epochs = new;
    relay.deliver(&read).await?;
    assert!(rows(&scene, &read).await?.is_empty());
    Ok(())
}

async fn a_settlement_with_an_epoch_to_come_is_refused(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene).await?;
    for epoch in relay.epochs.values_mut() {
        *epoch += 1;
    }
    settles_in_vain(&scene, &mut relay, &read).await
}

async fn a_lost_lane_does_not_stop_the_others(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene).await?;
    let lost = read[0].row_ref.lane;
    let epochs = relay.epochs.clone();
    relay.release(&[lost]).await?;
    let mut other = scene.idle_relay().await?;
    other.acquire(1).await?;
    relay.epochs = epochs;
    // Mixed, so that every way of settling meets the lost lane.
    let deliveries = verdicts();
    let settlements: Vec<Settlement> = read
        .iter()
        .enumerate()
        .map(|(n, outgoing)| relay.settlement(outgoing, deliveries[n % deliveries.len()].clone()))
        .collect();
    let before = rows(&scene, &read).await?;
    assert_eq!(relay.settle(&settlements).await?.lost, [lost]);
    let is_lost = |stored: &&Stored| stored.lane == i64::from(lost);
    let after = rows(&scene, &read).await?;
    assert_eq!(
        after.iter().filter(is_lost).collect::<Vec<_>>(),
        before.iter().filter(is_lost).collect::<Vec<_>>()
    );
    for stored in before.iter().filter(|stored| !is_lost(stored)) {
        assert!(
            !after.contains(stored),
            "a row of another lane was not settled: {stored:#?}"
        );
    }
    Ok(())
}

async fn a_stale_relay_and_its_successor_do_not_both_settle(scene: Scene) -> CaseResult {
    // Both say what became of the same rows at the same moment, again and again; the row says whom it heard.
    for round in 0..10 {
        let ids: Vec<Uuid> = scene.emit_key(&format!("k{round}"), 5).await?;
        let mut stale = scene.relay().await?;
        let read = stale.read_messages(5).await;
        let mut next = scene.second().await?.idle_relay().await?;
        let settlements: Vec<Settlement> = read
            .iter()
            .map(|d| stale.settlement(d, vec![sink("stale", retry(Duration::from_secs(3600)))]))
            .collect();
        stale.vanish(&next).await?;
        let settling = tokio::spawn(async move { stale.settle(&settlements).await });
        next.store.evict().await?;
        next.acquire(usize::MAX).await?;
        let again = next.read_messages(5).await;
        next.deliver(&again).await?;
        assert!(!settling.await.expect("no panic")?.lost.is_empty());
        for id in ids {
            assert!(scene.subject.operate.find(id).await?.is_empty());
        }
        next.store.deregister(next.owner).await?;
    }
    Ok(())
}
