//! Leases: a lane is with one relay at a time.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sendoff::ErrorKind;
use sendoff::store::{Lane, OwnerId, RelayCard, RelayStore};
use tokio::time::Instant;

use super::registry::{CaseResult, cases};
use super::scene::{LONG_LEASE, Scene, eventually, persistently};

cases![
    every_lane_is_given_out_once,
    a_heartbeat_lists_everybody_in_order,
    acquiring_needs_a_valid_lease,
    a_lease_that_ran_out_is_not_renewed,
    a_released_lane_is_free_at_once,
    a_lane_of_another_cannot_be_released,
    a_relay_that_deregisters_leaves_nothing_behind,
    a_lease_that_ran_out_is_evicted,
    evicting_does_not_touch_relays_that_live,
    the_epoch_grows_at_every_change_of_hands,
    a_lane_whose_owner_is_not_there_becomes_free needs Sql,
    two_relays_never_hold_one_lane,
];

async fn every_lane_is_given_out_once(scene: Scene) -> CaseResult {
    let lanes = scene.subject.relay.lanes();
    let (mut one, mut other) = (scene.idle_relay().await?, scene.second().await?.idle_relay().await?);
    let third = usize::from(lanes) / 3;
    assert_eq!(one.acquire(third).await?.len(), third);
    assert_eq!(one.acquire(0).await?.len(), 0);
    assert_eq!(
        other.acquire(usize::from(lanes)).await?.len(),
        usize::from(lanes) - third
    );
    assert_eq!(one.acquire(usize::MAX).await?.len(), 0);
    let held: Vec<Lane> = one.lanes().into_iter().chain(other.lanes()).collect();
    assert_eq!(held.iter().copied().collect::<BTreeSet<_>>(), (0..lanes).collect());
    assert_eq!(held.len(), usize::from(lanes));
    Ok(())
}

async fn a_heartbeat_lists_everybody_in_order(scene: Scene) -> CaseResult {
    let mut owners = Vec::new();
    for _ in 0..5 {
        owners.push(scene.idle_relay().await?.owner);
    }
    owners.sort_unstable();
    let (relay, other) = (&scene.subject.relay, scene.second().await?.subject.relay);
    for owner in &owners {
        let beat = relay.heartbeat(*owner, LONG_LEASE).await?;
        assert!(beat.alive);
        assert_eq!(beat.owners(), owners);
    }
    // One that never registered is told so, and sees the others.
    let beat = other.heartbeat(OwnerId::random(), LONG_LEASE).await?;
    assert!(!beat.alive);
    assert_eq!(beat.owners(), owners);
    Ok(())
}

async fn acquiring_needs_a_valid_lease(scene: Scene) -> CaseResult {
    let stranger = scene.subject.relay.acquire(OwnerId::random(), 1).await;
    assert_eq!(stranger.expect_err("it never registered").kind(), ErrorKind::LeaseLost);
    let (mut relay, witness) = (scene.idle_relay().await?, scene.idle_relay().await?);
    relay.vanish(&witness).await?;
    let late = relay.acquire(1).await;
    assert_eq!(late.expect_err("its lease ran out").kind(), ErrorKind::LeaseLost);
    Ok(())
}

async fn a_lease_that_ran_out_is_not_renewed(scene: Scene) -> CaseResult {
    let (relay, witness) = (scene.relay().await?, scene.idle_relay().await?);
    relay.vanish(&witness).await?;
    // Nobody has evicted it yet. Its lanes may be another's at any moment, so it must not come back.
    let beat = relay.store.heartbeat(relay.owner, LONG_LEASE).await?;
    assert!(!beat.alive);
    assert!(!beat.owners().contains(&relay.owner));
    Ok(())
}

async fn a_released_lane_is_free_at_once(scene: Scene) -> CaseResult {
    let (mut one, mut other) = (scene.relay().await?, scene.idle_relay().await?);
    let given = [3, 7, 11];
    let epochs = one.epochs.clone();
    one.release(&given).await?;
    let gained = other.acquire(usize::MAX).await?;
    let lanes: BTreeSet<Lane> = gained.iter().map(|grant| grant.lane).collect();
    assert_eq!(lanes, BTreeSet::from(given));
    for grant in gained {
        assert!(grant.epoch > epochs[&grant.lane]);
        assert_eq!(grant.crashes, 0, "giving a lane back is no crash");
    }
    Ok(())
}

async fn a_lane_of_another_cannot_be_released(scene: Scene) -> CaseResult {
    let (one, mut other) = (scene.relay().await?, scene.idle_relay().await?);
    other.release(&one.lanes()).await?;
    assert_eq!(other.acquire(usize::MAX).await?.len(), 0);
    Ok(())
}

async fn a_relay_that_deregisters_leaves_nothing_behind(scene: Scene) -> CaseResult {
    let (one, mut other) = (scene.relay().await?, scene.idle_relay().await?);
    let epochs = one.epochs.clone();
    one.store.deregister(one.owner).await?;
    assert!(!one.store.heartbeat(one.owner, LONG_LEASE).await?.alive);
    let gained = other.acquire(usize::MAX).await?;
    assert_eq!(gained.len(), epochs.len());
    for grant in gained {
        assert!(grant.epoch > epochs[&grant.lane]);
        assert_eq!(grant.crashes, 0);
    }
    assert_eq!(scene.subject.relay.evict().await?, 0);
    // Once more is no harm, and takes nothing from others.
    one.store.deregister(one.owner).await?;
    let beat = other.store.heartbeat(other.owner, LONG_LEASE).await?;
    assert_eq!((beat.alive, beat.owners()), (true, vec![other.owner]));
    Ok(())
}

async fn a_lease_that_ran_out_is_evicted(scene: Scene) -> CaseResult {
    let (mut one, mut other) = (scene.idle_relay().await?, scene.idle_relay().await?);
    one.acquire(5).await?;
    assert_eq!(scene.subject.relay.evict().await?, 0);
    one.vanish(&other).await?;
    assert_eq!(
        other.acquire(usize::MAX).await?.len(),
        usize::from(scene.subject.relay.lanes()) - 5
    );
    assert_eq!(scene.second().await?.subject.relay.evict().await?, 5);
    assert_eq!(scene.subject.relay.evict().await?, 0, "it is evicted once");
    let gained: BTreeSet<Lane> = other
        .acquire(usize::MAX)
        .await?
        .iter()
        .map(|grant| grant.lane)
        .collect();
    assert_eq!(gained, one.lanes().into_iter().collect());
    Ok(())
}

async fn evicting_does_not_touch_relays_that_live(scene: Scene) -> CaseResult {
    let (mut one, mut dying) = (scene.idle_relay().await?, scene.idle_relay().await?);
    one.acquire(5).await?;
    dying.acquire(5).await?;
    dying.vanish(&one).await?;
    assert_eq!(scene.subject.relay.evict().await?, 5);
    assert!(one.store.heartbeat(one.owner, LONG_LEASE).await?.alive);
    let gained = one.acquire(usize::MAX).await?;
    assert_eq!(one.epochs.len(), usize::from(scene.subject.relay.lanes()));
    assert_eq!(gained.iter().filter(|grant| grant.crashes > 0).count(), 5);
    Ok(())
}

async fn the_epoch_grows_at_every_change_of_hands(scene: Scene) -> CaseResult {
    let (mut one, witness) = (scene.idle_relay().await?, scene.idle_relay().await?);
    let mut last = BTreeMap::<Lane, i64>::new();
    for round in 0..6 {
        for grant in one.acquire(usize::MAX).await? {
            let before = last.insert(grant.lane, grant.epoch);
            assert!(before.is_none_or(|before| before < grant.epoch));
        }
        match round % 3 {
            0 => one.release(&one.lanes()).await?,
            1 => {
                one.store.deregister(one.owner).await?;
                one = scene.idle_relay().await?;
            }
            _ => {
                one.vanish(&witness).await?;
                scene.subject.relay.evict().await?;
                one = scene.idle_relay().await?;
            }
        }
    }
    assert_eq!(last.len(), usize::from(scene.subject.relay.lanes()));
    Ok(())
}

async fn a_lane_whose_owner_is_not_there_becomes_free(scene: Scene) -> CaseResult {
    let mut one = scene.relay().await?;
    scene.subject.database.execute("DELETE FROM outbox_relay").await?;
    assert_eq!(scene.subject.relay.evict().await?, one.epochs.len() as u64);
    let error = one.acquire(1).await.expect_err("it is struck off");
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    assert_eq!(
        scene.idle_relay().await?.acquire(usize::MAX).await?.len(),
        one.epochs.len()
    );
    Ok(())
}

/// Who surely holds a lane, and until when: from the answer to acquire to the call of release or the end of the lease,
/// counted from before the call that renewed it.
#[derive(Default)]
struct Ledger {
    sure: BTreeMap<Lane, (OwnerId, Instant)>,
    epochs: HashSet<(Lane, i64)>,
    grants: usize,
    evicted: u64,
}

async fn two_relays_never_hold_one_lane(scene: Scene) -> CaseResult {
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let until = Instant::now() + Duration::from_millis(1500);
    let mut tasks = tokio::task::JoinSet::new();
    for seed in 0..5 {
        let (store, ledger) = (scene.second().await?.subject.relay, ledger.clone());
        tasks.spawn(async move {
            let mut rng = fastrand::Rng::with_seed(seed);
            while Instant::now() < until {
                one_life(store.as_ref(), &ledger, &mut rng, until).await;
            }
        });
    }
    tasks.join_all().await;
    let counted = |ledger: &Ledger| (ledger.grants, ledger.evicted);
    let (grants, evicted) = counted(&ledger.lock().expect("no task panicked"));
    assert!(grants > 50 && evicted > 0, "{grants} grants, {evicted} evicted");
    // When all have vanished, nothing is stuck.
    eventually("every lane becomes free", || async {
        scene.subject.relay.evict().await?;
        let mut last = scene.idle_relay().await?;
        let all = last.acquire(usize::MAX).await?.len() == usize::from(scene.subject.relay.lanes());
        last.store.deregister(last.owner).await?;
        Ok(all)
    })
    .await
}

/// A relay that registers, takes and gives back lanes at random, and vanishes or deregisters.
async fn one_life(store: &dyn RelayStore, ledger: &Mutex<Ledger>, rng: &mut fastrand::Rng, until: Instant) {
    let owner = OwnerId::random();
    let lease = Duration::from_millis(rng.u64(60..200));
    // Databases whose clock is coarse may cut a lease short by one tick.
    let mut sure_until = Instant::now() + lease - Duration::from_millis(10);
    let mut held: Vec<Lane> = Vec::new();
    let card = RelayCard::named("random");
    persistently(|| store.register(owner, &card, lease))
        .await
        .expect("to register");
    for _ in 0..rng.usize(3..12) {
        if Instant::now() >= until {
            break;
        }
        match rng.u8(0..10) {
            0..=3 => {
                let Ok(grants) = store.acquire(owner, rng.usize(1..30)).await else {
                    continue;
                };
                let now = Instant::now();
                let mut ledger = ledger.lock().expect("no task panicked");
                for grant in grants {
                    ledger.grants += 1;
                    assert!(
                        ledger.epochs.insert((grant.lane, grant.epoch)),
                        "an epoch was given out twice"
                    );
                    let before = ledger.sure.insert(grant.lane, (owner, sure_until));
                    let clash = before.filter(|(other, sure)| *other != owner && now < *sure);
                    assert!(clash.is_none(), "lane {} was with two relays", grant.lane);
                    held.push(grant.lane);
                }
            }
            4..=5 => {
                rng.shuffle(&mut held);
                let given = held.split_off(held.len() / 2);
                // Before the call: from here on another may have them.
                ledger
                    .lock()
                    .expect("no task panicked")
                    .sure
                    .retain(|lane, (of, _)| *of != owner || !given.contains(lane));
                let _ = store.release(owner, &given).await;
            }
            6..=7 => {
                let began = Instant::now();
                if store.heartbeat(owner, lease).await.is_ok_and(|beat| beat.alive) {
                    sure_until = began + lease - Duration::from_millis(10);
                    for (_, sure) in ledger
                        .lock()
                        .expect("no task panicked")
                        .sure
                        .values_mut()
                        .filter(|(of, _)| *of == owner)
                    {
                        *sure = sure_until;
                    }
                }
            }
            8 => {
                let evicted = store.evict().await.unwrap_or_default();
                ledger.lock().expect("no task panicked").evicted += evicted;
            }
            _ => tokio::time::sleep(Duration::from_millis(rng.u64(1..60))).await,
        }
    }
    if rng.bool() {
        ledger
            .lock()
            .expect("no task panicked")
            .sure
            .retain(|_, (of, _)| *of != owner);
        let _ = store.deregister(owner).await;
    }
}
