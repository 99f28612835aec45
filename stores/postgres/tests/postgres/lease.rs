//! Who works on which lane, and who does not any more.

use std::collections::HashSet;
use std::time::Duration;

use sendoff::ErrorKind;
use sendoff::store::{OwnerId, RelayStore};

use crate::scratch::{LEASE, Relay, Scratch, message};

#[tokio::test]
async fn relays_that_ask_at_once_never_get_the_same_lane() {
    let scratch = Scratch::new().await;
    let mut asking = Vec::new();
    for _ in 0..8 {
        let store = scratch.again(|config| config);
        asking.push(tokio::spawn(async move {
            let owner = OwnerId::random();
            store.enlist(owner, "test", LEASE).await.unwrap();
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
    scratch.store.enlist(owner, "test", LEASE).await.unwrap();
    assert!(scratch.store.heartbeat(owner, LEASE).await.unwrap().alive);
    scratch.run("UPDATE outbox_relay SET until = clock_timestamp()").await;
    let heartbeat = scratch.store.heartbeat(owner, LEASE).await.unwrap();
    assert!(!heartbeat.alive && heartbeat.relays.is_empty());
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
        scratch.store.enlist(*owner, "test", LEASE).await.unwrap();
    }
    owners.sort_unstable();
    for owner in &owners {
        assert_eq!(scratch.store.heartbeat(*owner, LEASE).await.unwrap().relays, owners);
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
    let lanes: std::collections::BTreeSet<_> = found.iter().map(|delivery| delivery.place.lane).collect();
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
    let retry = sendoff::store::Verdict::Hold;
    assert_eq!(
        stale.settle(&found[0], &[("shop", retry)]).await.lost,
        [found[0].place.lane]
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
    scratch.store.release(relay.owner, &[old.place.lane]).await.unwrap();
    let grants = scratch.store.acquire(relay.owner, 80).await.unwrap();
    assert_eq!((grants.len(), grants[0].epoch), (1, old.epoch + 2));
    assert_eq!(relay.settle_all(&[old]).await.lost, [grants[0].lane]);
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_message").await, "1");
}

#[tokio::test]
async fn evicting_does_not_wait_for_a_settlement_under_way() {
    let scratch = Scratch::new().await;
    let relay = scratch.relay().await;
    scratch.run("BEGIN").await;
    scratch
        .run(&format!(
            "SELECT outbox_check_lanes('{}', '{{1}}', '{{1}}')",
            relay.owner
        ))
        .await;
    let other = crate::scratch::connect().await;
    let expire = scratch
        .names
        .render("UPDATE outbox_relay SET until = clock_timestamp()");
    other.batch_execute(&expire).await.unwrap();
    assert_eq!(
        scratch.store.evict().await.unwrap(),
        0,
        "it is skipped while it settles"
    );
    scratch.run("COMMIT").await;
    assert_eq!(scratch.store.evict().await.unwrap(), 80);
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
async fn a_relay_that_retires_leaves_its_lanes_clean() {
    let scratch = Scratch::new().await;
    let relay = scratch.relay().await;
    scratch
        .store
        .suspect(relay.owner, 3, Some((7, Some("shop"))))
        .await
        .unwrap();
    scratch.store.retire(relay.owner).await.unwrap();
    let next = scratch.relay().await;
    assert_eq!(next.grants.len(), 80);
    assert!(
        next.grants
            .iter()
            .all(|grant| grant.crashes == 0 && grant.suspect.is_none())
    );
    assert_eq!(scratch.value("SELECT count(*) FROM outbox_relay").await, "1");
}

#[tokio::test]
async fn crashes_are_counted_on_the_lane_and_on_its_suspect() {
    let scratch = Scratch::new().await;
    let mut crashes = Vec::new();
    for _ in 0..3 {
        let relay = Relay::new(scratch.store.clone()).await;
        let grant = relay.grants.iter().find(|grant| grant.lane == 5).unwrap().clone();
        crashes.push((
            grant.crashes,
            grant.suspect.map(|suspect| (suspect.seq, suspect.crashes)),
        ));
        scratch.store.suspect(relay.owner, 5, Some((7, None))).await.unwrap();
        scratch.run("UPDATE outbox_relay SET until = clock_timestamp()").await;
        scratch.store.evict().await.unwrap();
    }
    assert_eq!(crashes, [(0, None), (1, Some((7, 1))), (2, Some((7, 2)))]);
    let relay = Relay::new(scratch.store.clone()).await;
    scratch.store.suspect(relay.owner, 5, Some((8, None))).await.unwrap();
    assert_eq!(
        scratch
            .value("SELECT suspect_crashes FROM outbox_lane WHERE lane = 5")
            .await,
        "0"
    );
    scratch.store.suspect(relay.owner, 5, None).await.unwrap();
    scratch.store.absolve(relay.owner, &[5]).await.unwrap();
    let lane = "SELECT concat_ws(' ', crashes, suspect_crashes, suspect_seq IS NULL) FROM outbox_lane WHERE lane = 5";
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
