use std::collections::HashSet;
use std::time::Duration;

use sendoff::ErrorKind;
use sendoff::store::{Lane, OperateStore, OwnerId, RelayCard, RelayStore, RowId, RowRef, Table};

use crate::outbox::{LEASE, TestOutbox, TestRelay, text};

/// A row of a lane.
fn row(lane: Lane, seq: i64, id: &str, sink: Option<&str>) -> RowRef {
    RowRef {
        table: Table::Waiting,
        lane,
        seq,
        id: RowId::from_text(id.as_bytes()),
        sink: sink.map(Into::into),
        locator: 0,
    }
}

/// Makes a lease run out by the database's clock, as time would.
fn run_out(outbox: &TestOutbox, owner: OwnerId) {
    outbox.run(&format!("UPDATE outbox_relay SET until = 1 WHERE owner = '{owner}'"));
}

#[tokio::test]
async fn two_relays_never_hold_one_lane() {
    let outbox = TestOutbox::new().await;
    let stores: Vec<_> = (0..4).map(|_| outbox.another()).collect();
    let takers = stores.iter().map(|store| async move {
        let owner = OwnerId::random();
        store.register(owner, &RelayCard::named("test"), LEASE).await.unwrap();
        let mut lanes = Vec::new();
        for _ in 0..5 {
            lanes.extend(
                store
                    .acquire(owner, 7)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|grant| grant.lane),
            );
        }
        lanes
    });
    let taken: Vec<Lane> = futures_all(takers).await.into_iter().flatten().collect();
    assert_eq!(taken.len(), 80, "4 relays that ask for 35 each share all 80");
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 80);
}

async fn futures_all<F: Future<Output = Vec<Lane>>>(futures: impl Iterator<Item = F>) -> Vec<Vec<Lane>> {
    let mut done = Vec::new();
    let mut pending: Vec<_> = futures.map(Box::pin).collect();
    while !pending.is_empty() {
        let (result, index) = std::future::poll_fn(|context| {
            for (index, future) in pending.iter_mut().enumerate() {
                if let std::task::Poll::Ready(result) = future.as_mut().poll(context) {
                    return std::task::Poll::Ready((result, index));
                }
            }
            std::task::Poll::Pending
        })
        .await;
        done.push(result);
        drop(pending.swap_remove(index));
    }
    done
}

#[tokio::test]
async fn lanes_for_priorities_are_shared_like_the_others() {
    let outbox = TestOutbox::new().await;
    let owner = OwnerId::random();
    outbox
        .store
        .register(owner, &RelayCard::named("test"), LEASE)
        .await
        .unwrap();
    let half = outbox.store.acquire(owner, 40).await.unwrap();
    let urgent = half.iter().filter(|grant| (64..72).contains(&grant.lane)).count();
    let idle = half.iter().filter(|grant| (72..80).contains(&grant.lane)).count();
    assert!(
        (3..=5).contains(&urgent) && (3..=5).contains(&idle),
        "{urgent} urgent, {idle} idle"
    );
}

#[tokio::test]
async fn acquiring_needs_a_valid_lease() {
    let outbox = TestOutbox::new().await;
    let owner = OwnerId::random();
    let error = outbox.store.acquire(owner, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    outbox
        .store
        .register(owner, &RelayCard::named("test"), LEASE)
        .await
        .unwrap();
    run_out(&outbox, owner);
    let error = outbox.store.acquire(owner, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    assert_eq!(
        outbox.ask::<i64>("SELECT count(*) FROM outbox_lane WHERE owner IS NOT NULL"),
        0
    );
}

#[tokio::test]
async fn a_heartbeat_renews_a_lease_and_names_all_relays() {
    let outbox = TestOutbox::new().await;
    let (a, b) = (OwnerId::random(), OwnerId::random());
    for owner in [a, b] {
        outbox
            .store
            .register(owner, &RelayCard::named("test"), Duration::from_secs(5))
            .await
            .unwrap();
    }
    let before: i64 = outbox.ask(&format!("SELECT until FROM outbox_relay WHERE owner = '{a}'"));
    let beat = outbox.store.heartbeat(a, LEASE).await.unwrap();
    let mut both = vec![a, b];
    both.sort();
    assert!(beat.alive);
    assert_eq!(beat.owners(), both);
    let after: i64 = outbox.ask(&format!("SELECT until FROM outbox_relay WHERE owner = '{a}'"));
    assert!(after > before + 50_000_000);
}

#[tokio::test]
async fn a_lease_that_has_run_out_is_not_renewed() {
    let outbox = TestOutbox::new().await;
    let owner = OwnerId::random();
    outbox
        .store
        .register(owner, &RelayCard::named("test"), LEASE)
        .await
        .unwrap();
    run_out(&outbox, owner);
    let beat = outbox.store.heartbeat(owner, LEASE).await.unwrap();
    assert!(!beat.alive && beat.owners().is_empty());
}

#[tokio::test]
async fn a_lease_that_ends_further_ahead_than_it_is_long_is_none() {
    let outbox = TestOutbox::new().await;
    let relay = outbox.relay().await;
    // As if the clock had been set back by an hour.
    let ahead = |by: u64| {
        format!(
            "UPDATE outbox_relay SET until = until + {by}000000 WHERE owner = '{}'",
            relay.owner
        )
    };
    outbox.run(&ahead(11));
    assert!(
        outbox.store.lane_views().await.unwrap()[0].until.is_some(),
        "a fifth of it is nothing"
    );
    outbox.run(&ahead(3600));
    assert!(outbox.store.lane_views().await.unwrap()[0].until.is_none());
    let error = outbox.store.acquire(relay.owner, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    let beat = outbox.store.heartbeat(relay.owner, LEASE).await.unwrap();
    assert!(beat.alive, "its owner lives and may renew it");
    assert_eq!(beat.owners(), [relay.owner]);
    assert_eq!(outbox.store.evict().await.unwrap(), 0);
    outbox.run(&ahead(3600));
    let reaped = outbox.store.reap_gone(Duration::ZERO, "ops").await.unwrap();
    assert_eq!(reaped.lanes, 80);
    assert!(!outbox.store.heartbeat(relay.owner, LEASE).await.unwrap().alive);
}

#[tokio::test]
async fn eviction_frees_the_lanes_of_the_dead_and_counts_their_crash() {
    let outbox = TestOutbox::new().await;
    let dead = TestRelay::start(&outbox.store).await;
    assert_eq!(outbox.store.evict().await.unwrap(), 0, "nobody is dead yet");
    outbox
        .store
        .quarantine(dead.owner, 7, &[row(7, 41, "odd", Some("audit"))])
        .await
        .unwrap();
    run_out(&outbox, dead.owner);
    assert_eq!(outbox.store.evict().await.unwrap(), 80);
    assert_eq!(outbox.store.evict().await.unwrap(), 0);

    let next = TestRelay::start(&outbox.store).await;
    let grant = next.grants.iter().find(|grant| grant.lane == 7).unwrap();
    assert_eq!((grant.epoch, grant.crashes), (3, 1), "granted, freed, granted");
    let quarantined = grant.quarantined.as_ref().unwrap();
    assert!(quarantined.is_at(&row(7, 41, "odd", Some("audit"))), "{quarantined:?}");
    assert_eq!(quarantined.crashes, 1);
    assert!(
        next.grants
            .iter()
            .filter(|grant| grant.lane != 7)
            .all(|grant| grant.quarantined.is_none())
    );
}

#[tokio::test]
async fn lanes_of_an_owner_that_was_never_registered_are_freed() {
    let outbox = TestOutbox::new().await;
    outbox.run("UPDATE outbox_lane SET owner = 'nobody' WHERE lane = 3");
    assert_eq!(outbox.store.evict().await.unwrap(), 1);
}

#[tokio::test]
async fn a_clean_stop_leaves_no_crashes_and_hands_over_at_once() {
    let outbox = TestOutbox::new().await;
    let first = outbox.relay().await;
    run_out(&outbox, first.owner);
    outbox.store.evict().await.unwrap();
    let second = outbox.relay().await;
    assert!(second.grants.iter().all(|grant| grant.crashes == 1));
    outbox.store.deregister(second.owner).await.unwrap();
    let third = outbox.relay().await;
    assert_eq!(third.grants.len(), 80);
    assert!(third.grants.iter().all(|grant| grant.crashes == 0));
    assert_eq!(outbox.ask::<i64>("SELECT count(*) FROM outbox_relay"), 1);
}

#[tokio::test]
async fn released_lanes_can_be_taken_and_keep_their_crashes() {
    let outbox = TestOutbox::new().await;
    let first = outbox.relay().await;
    outbox.run("UPDATE outbox_lane SET crashed_by = printf('%.*c', 74, 'x') WHERE lane = 5");
    outbox.store.release(OwnerId::random(), &[5]).await.unwrap();
    outbox.store.release(first.owner, &[5, 200]).await.unwrap();
    let second = outbox.relay().await;
    assert_eq!(second.grants.len(), 1);
    let grant = &second.grants[0];
    assert_eq!((grant.lane, grant.crashes, grant.quarantined.clone()), (5, 2, None));
    assert!(grant.epoch > first.epoch(5));
}

#[tokio::test]
async fn an_owner_that_lives_with_its_lanes_clears_quarantine_them() {
    let outbox = TestOutbox::new().await;
    let relay = outbox.relay().await;
    outbox.run("UPDATE outbox_lane SET crashed_by = printf('%.*c', 74, 'x') WHERE lane IN (1, 2)");
    outbox.store.clear_quarantine(OwnerId::random(), &[1, 2]).await.unwrap();
    outbox.store.clear_quarantine(relay.owner, &[1]).await.unwrap();
    assert_eq!(
        outbox.ask::<i64>("SELECT length(crashed_by) / 37 FROM outbox_lane WHERE lane = 1"),
        0
    );
    assert_eq!(
        outbox.ask::<i64>("SELECT length(crashed_by) / 37 FROM outbox_lane WHERE lane = 2"),
        2
    );
}

#[tokio::test]
async fn a_quarantine_counts_anew_for_another_row_and_not_for_the_same() {
    let outbox = TestOutbox::new().await;
    let relay = outbox.relay().await;
    let crashes = || outbox.ask::<i64>("SELECT length(quarantine_crashed_by) / 37 FROM outbox_lane WHERE lane = 9");
    let first = row(9, 4, "one", None);
    let quarantined = async |row: &RowRef| {
        outbox
            .store
            .quarantine(relay.owner, 9, std::slice::from_ref(row))
            .await
            .unwrap();
    };
    quarantined(&first).await;
    outbox.run("UPDATE outbox_lane SET quarantine_crashed_by = printf('%.*c', 74, 'x') WHERE lane = 9");
    quarantined(&first).await;
    assert_eq!(crashes(), 2);
    for other in [row(9, 4, "one", Some("audit")), row(9, 4, "other", Some("audit"))] {
        quarantined(&other).await;
        assert_eq!(crashes(), 0, "{other:?}");
        outbox.run("UPDATE outbox_lane SET quarantine_crashed_by = printf('%.*c', 74, 'x') WHERE lane = 9");
    }
    outbox.store.quarantine(relay.owner, 9, &[]).await.unwrap();
    assert_eq!(crashes(), 0);
    assert_eq!(
        outbox.ask::<Option<i64>>("SELECT quarantine_first FROM outbox_lane WHERE lane = 9"),
        None
    );

    outbox
        .store
        .quarantine(OwnerId::random(), 9, std::slice::from_ref(&first))
        .await
        .unwrap();
    assert_eq!(
        outbox.ask::<Option<i64>>("SELECT quarantine_first FROM outbox_lane WHERE lane = 9"),
        None,
        "a stranger names no quarantined message"
    );
}

#[tokio::test]
async fn a_stale_relay_cannot_settle() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a"), text("b")]).await;
    let mut stale = outbox.relay().await;
    let rows = stale.outgoing().await;
    let settlements: Vec<_> = rows.iter().map(|row| stale.settlement(row, &[])).collect();
    run_out(&outbox, stale.owner);

    // Its lease has run out, though nobody has taken the lanes.
    let report = stale.settle_all(&settlements).await;
    assert_eq!(
        report.lost.len(),
        rows.iter().map(|row| row.row_ref.lane).collect::<HashSet<_>>().len()
    );
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 2);

    // Another has them now, and it has registered anew, as a process that was paused might.
    outbox.store.evict().await.unwrap();
    let mut fresh = outbox.relay().await;
    outbox
        .store
        .register(stale.owner, &RelayCard::named("test"), LEASE)
        .await
        .unwrap();
    assert!(!stale.settle_all(&settlements).await.lost.is_empty());
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 2);

    // Even the owner itself with an epoch of before.
    let old = fresh
        .outgoing()
        .await
        .iter()
        .map(|row| stale.settlement(row, &[]))
        .collect::<Vec<_>>();
    assert!(!fresh.settle_all(&old).await.lost.is_empty());
    assert_eq!(outbox.store.backlog().await.unwrap().ready, 2);
}

#[tokio::test]
async fn cleaning_takes_what_has_served_its_time() {
    let outbox = TestOutbox::with(|config| config.retention(Some(Duration::from_secs(3600)))).await;
    outbox
        .emit(&[text("old").idempotency_key("old"), text("new").idempotency_key("new")])
        .await;
    let mut relay = outbox.relay().await;
    let settlements: Vec<_> = relay
        .outgoing()
        .await
        .iter()
        .map(|row| relay.settlement(row, &[]))
        .collect();
    relay.settle_all(&settlements).await;
    outbox.run(
        "UPDATE outbox_dedup SET until = 1 WHERE idempotency_key = 'old';
         UPDATE outbox_delivered SET delivered_at = 1 WHERE idempotency_key = 'old';
         INSERT INTO outbox_inbox (consumer, message_id, handled_at) VALUES ('billing', 'old', 1);
         INSERT INTO outbox_inbox (consumer, message_id) VALUES ('billing', 'new');",
    );
    assert_eq!(outbox.store.clean(2).await.unwrap(), 2);
    assert_eq!(outbox.store.clean(2).await.unwrap(), 1);
    assert_eq!(outbox.store.clean(1).await.unwrap(), 0);
    assert_eq!(
        outbox.ask::<String>("SELECT group_concat(message_id) FROM outbox_inbox"),
        "new"
    );
    for table in ["outbox_dedup", "outbox_delivered"] {
        assert_eq!(
            outbox.ask::<String>(&format!("SELECT group_concat(idempotency_key) FROM {table}")),
            "new"
        );
    }
}
