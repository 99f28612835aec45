//! Who works on which lane, and who does not any more.

use std::collections::HashSet;
use std::time::Duration;

use sendoff::ErrorKind;
use sendoff::store::{OperateStore, OwnerId, RelayCard, RelayStore};

use crate::scratch::{LEASE, Relay, Scratch, message, row_ref};

#[tokio::test]
async fn relays_that_ask_at_once_never_get_the_same_lane() {
    let scratch = Scratch::new().await;
    let mut asking = Vec::new();
    for _ in 0..8 {
        let store = scratch.again(|config| config);
        asking.push(tokio::spawn(async move {
            let owner = OwnerId::random();
            store.register(owner, &RelayCard::named("test"), LEASE).await.unwrap();
            let mut lanes = Vec::new();
            for _ in 0..4 {
                lanes.extend(
                    store
                        .acquire(owner, 3)
                        .await
                        .unwrap()
                        .into_iter()
                        .map(|grant| grant.lane),
                );
            }
            lanes
        }));
    }
    let mut all = Vec::new();
    for task in asking {
        all.extend(task.await.unwrap());
    }
    let distinct: HashSet<_> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (80, 80));
}

#[tokio::test]
async fn a_lease_that_has_run_out_is_not_renewed_and_leases_nothing() {
    let scratch = Scratch::new().await;
    let owner = OwnerId::random();
    scratch
        .store
        .register(owner, &RelayCard::named("test"), LEASE)
        .await
        .unwrap();
    assert!(scratch.store.heartbeat(owner, LEASE).await.unwrap().alive);
    scratch.run("UPDATE outbox_relay SET until = clock_timestamp()").await;
    let heartbeat = scratch.store.heartbeat(owner, LEASE).await.unwrap();
    assert!(!heartbeat.alive && heartbeat.owners().is_empty());
    assert_eq!(
        scratch.store.acquire(owner, 1).await.unwrap_err().kind(),
        ErrorKind::LeaseLost
    );
    let unknown = scratch.store.acquire(OwnerId::random(), 1).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::LeaseLost);
}

#[tokio::test]
async fn everybody_sees_the_same_list_of_relays() {
    let scratch = Scratch::new().await;
    let mut owners: Vec<_> = (0..5).map(|_| OwnerId::random()).collect();
    for owner in &owners {
        scratch
            .store
            .register(*owner, &RelayCard::named("test"), LEASE)
            .await
            .unwrap();
    }
    owners.sort_unstable();
    for owner in &owners {
        assert_eq!(scratch.store.heartbeat(*owner, LEASE).await.unwrap().owners(), owners);
    }
}

#[tokio::test]
async fn an_evicted_relay_settles_nothing() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a"), message("b").key("k")]).await;
    let mut stale = scratch.relay().await;
    let found = stale.read().await;
    scratch.run("UPDATE outbox_relay SET until = clock_timestamp()").await;
    let report = stale.deliver(&found).await;
    // A message without a key may be in the other's lane.
    let lanes: std::collections::BTreeSet<_> = found.iter().map(|outgoing| outgoing.row_ref.lane).collect();
    assert_eq!(
        report.lost.len(),
        lanes.len(),
        "its lease has run out, although nobody has noticed yet"
    );
    assert_eq!(scratch.store.evict().await.unwrap(), 80);
    let mut next = scratch.relay().await;
    assert_eq!(next.grants[0].crashes, 1);
    assert_eq!(
        next.grants[0].epoch,
        stale.grants[0].epoch + 2,
        "taken away, and leased"
    );
    let retry = sendoff::store::Verdict::Blocked;
    assert_eq!(
        stale.settle(&found[0], &[("shop", retry)]).await.lost,
        [found[0].row_ref.lane]
    );
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "2");
    let again = next.read().await;
    assert_eq!(next.deliver(&again).await.lost, Vec::<u16>::new());
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "0");
}

#[tokio::test]
async fn an_old_epoch_of_the_same_relay_settles_nothing() {
    let scratch = Scratch::new().await;
    scratch.emit(&[message("a").key("k")]).await;
    let mut relay = scratch.relay().await;
    let found = relay.read().await;
    let old = relay.settlement(&found[0], &[]);
    scratch.store.release(relay.owner, &[old.row_ref.lane]).await.unwrap();
    let grants = scratch.store.acquire(relay.owner, 80).await.unwrap();
    assert_eq!((grants.len(), grants[0].epoch), (1, old.epoch + 2));
    assert_eq!(relay.settle_all(&[old]).await.lost, [grants[0].lane]);
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "1");
}

/// A settlement that has passed the fence, and whose client says nothing more.
async fn frozen_settlement(scratch: &Scratch, owner: OwnerId) -> (tokio_postgres::Client, i32) {
    let client = crate::scratch::connect().await;
    let begin = format!("BEGIN; SELECT outbox_check_lanes('{owner}', '{{1}}', '{{1}}')");
    client.batch_execute(&scratch.names.render(&begin)).await.unwrap();
    let pid = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    (client, pid)
}

#[tokio::test]
async fn a_settlement_that_outlives_its_lease_is_ended_and_its_lanes_are_taken() {
    let scratch = Scratch::new().await;
    let relay = scratch.relay().await;
    let (client, _) = frozen_settlement(&scratch, relay.owner).await;
    assert_eq!(scratch.store.evict().await.unwrap(), 0, "its lease holds");
    client.batch_execute("SELECT 1").await.expect("nobody ended it");
    scratch.run("UPDATE outbox_relay SET until = clock_timestamp()").await;
    assert_eq!(scratch.store.evict().await.unwrap(), 80);
    client.batch_execute("COMMIT").await.expect_err("it was ended");
    let next = scratch.relay().await;
    assert_eq!(next.grants.len(), 80);
}

#[tokio::test]
async fn a_settlement_of_a_lease_that_is_too_far_ahead_is_ended() {
    let scratch = Scratch::new().await;
    let relay = scratch.relay().await;
    let (_client, _) = frozen_settlement(&scratch, relay.owner).await;
    // As after a step back of the clock.
    scratch
        .run("UPDATE outbox_relay SET until = until + interval '1 hour'")
        .await;
    assert_eq!(scratch.store.evict().await.unwrap(), 80);
}

#[tokio::test]
async fn reaping_frees_lanes_behind_a_frozen_settlement() {
    let scratch = Scratch::new().await;
    let relay = scratch.relay().await;
    let (_client, _) = frozen_settlement(&scratch, relay.owner).await;
    scratch.run("UPDATE outbox_relay SET until = clock_timestamp()").await;
    let reaped = scratch.store.reap_gone(Duration::from_secs(60), "ann").await.unwrap();
    assert_eq!(reaped.lanes, 80);
}

#[tokio::test]
async fn the_server_ends_a_settlement_that_is_idle_when_the_lease_is_over() {
    let scratch = Scratch::new().await;
    let relay = scratch.relay().await;
    scratch
        .store
        .heartbeat(relay.owner, Duration::from_millis(1500))
        .await
        .unwrap();
    let (_client, pid) = frozen_settlement(&scratch, relay.owner).await;
    let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
    let began = std::time::Instant::now();
    // Nobody evicts anybody here.
    while scratch.value(&gone).await != "0" {
        assert!(began.elapsed() < Duration::from_secs(20), "it is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn giving_lanes_back_waits_for_the_settlement_under_way() {
    let scratch = Scratch::new().await;
    let relay = scratch.relay().await;
    scratch.run("BEGIN").await;
    scratch
        .run(&format!(
            "SELECT outbox_check_lanes('{}', '{{1}}', '{{1}}')",
            relay.owner
        ))
        .await;
    let (store, owner) = (scratch.store.clone(), relay.owner);
    let releasing = tokio::spawn(async move { store.release(owner, &[1]).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%me AS (%'
        AND query LIKE '%outbox_relay%'";
    let probe = crate::scratch::connect().await;
    loop {
        let rows = probe.query(&scratch.names.render(waiting), &[]).await.unwrap();
        if rows[0].get::<_, i64>(0) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    scratch.run("COMMIT").await;
    releasing.await.unwrap().unwrap();
    assert_eq!(
        scratch
            .value("SELECT owner IS NULL FROM outbox_lane WHERE lane = 1")
            .await,
        "t"
    );
}

#[tokio::test]
async fn a_relay_that_deregisters_leaves_its_lanes_clean() {
    let scratch = Scratch::new().await;
    let relay = scratch.relay().await;
    scratch
        .store
        .quarantine(relay.owner, 3, &[row_ref(3, 7, Some("shop"))])
        .await
        .unwrap();
    scratch.store.deregister(relay.owner).await.unwrap();
    let next = scratch.relay().await;
    assert_eq!(next.grants.len(), 80);
    assert!(
        next.grants
            .iter()
            .all(|grant| grant.crashes == 0 && grant.quarantined.is_none())
    );
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_relay").await, "1");
}

#[tokio::test]
async fn crashes_are_counted_on_the_lane_and_on_its_quarantine() {
    let scratch = Scratch::new().await;
    let mut crashes = Vec::new();
    for _ in 0..3 {
        let relay = Relay::new(scratch.store.clone()).await;
        let grant = relay.grants.iter().find(|grant| grant.lane == 5).unwrap().clone();
        crashes.push((
            grant.crashes,
            grant
                .quarantined
                .map(|quarantined| (quarantined.first, quarantined.crashes)),
        ));
        scratch
            .store
            .quarantine(relay.owner, 5, &[row_ref(5, 7, None)])
            .await
            .unwrap();
        scratch.run("UPDATE outbox_relay SET until = clock_timestamp()").await;
        scratch.store.evict().await.unwrap();
    }
    assert_eq!(crashes, [(0, None), (1, Some((7, 1))), (2, Some((7, 2)))]);
    let relay = Relay::new(scratch.store.clone()).await;
    scratch
        .store
        .quarantine(relay.owner, 5, &[row_ref(5, 8, None)])
        .await
        .unwrap();
    assert_eq!(
        scratch
            .value("SELECT length(quarantine_crashed_by) / 37 FROM outbox_lane WHERE lane = 5")
            .await,
        "0"
    );
    scratch.store.quarantine(relay.owner, 5, &[]).await.unwrap();
    scratch.store.clear_quarantine(relay.owner, &[5]).await.unwrap();
    let lane = "SELECT concat_ws(' ', length(crashed_by) / 37, length(quarantine_crashed_by) / 37, quarantine_first IS NULL) FROM outbox_lane WHERE lane = 5";
    assert_eq!(scratch.value(lane).await, "0 0 t");
}

#[tokio::test]
async fn lanes_of_an_owner_that_nobody_knows_become_free() {
    let scratch = Scratch::new().await;
    let relay = scratch.relay().await;
    scratch
        .run(&format!("DELETE FROM outbox_relay WHERE owner = '{}'", relay.owner))
        .await;
    assert_eq!(scratch.store.evict().await.unwrap(), 80);
    assert_eq!(scratch.store.evict().await.unwrap(), 0);
}
