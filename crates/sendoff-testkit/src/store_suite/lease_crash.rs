//! Crashes: what is remembered of relays that vanished.

use sendoff::store::{Lane, LaneGrant, Place, Room, Suspect};
use sendoff::{ErrorKind, Uuid};

use super::manual_relay::ManualRelay;
use super::registry::{CaseResult, cases};
use super::scene::Scene;

cases![
    crashes_in_a_row_are_counted,
    a_clean_stop_forgets_crashes,
    crashes_survive_a_release,
    a_relay_that_lives_absolves_its_lanes,
    a_suspect_is_remembered_over_an_eviction,
    another_suspect_starts_from_none,
    a_suspect_that_is_done_with_is_forgotten,
    a_suspect_of_a_clean_release_is_forgotten,
    only_the_owner_names_a_suspect,
];

const LANE: Lane = 5;

/// A relay with every lane that vanishes; the next one then has them. Returns it with the grant of the lane.
async fn crash(scene: &Scene, relay: &ManualRelay) -> sendoff::Result<(ManualRelay, LaneGrant)> {
    let mut next = scene.idle_relay().await?;
    relay.vanish(&next).await?;
    scene.subject.relay.evict().await?;
    let grants = next.acquire(usize::MAX).await?;
    let grant = grants.into_iter().find(|grant| grant.lane == LANE);
    Ok((next, grant.expect("the lane is free")))
}

async fn crashes_in_a_row_are_counted(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    for crashes in 1..=3 {
        let (next, grant) = crash(&scene, &relay).await?;
        assert_eq!((grant.crashes, grant.suspect), (crashes, None));
        relay = next;
    }
    Ok(())
}

async fn a_clean_stop_forgets_crashes(scene: Scene) -> CaseResult {
    let (relay, _) = crash(&scene, &scene.relay().await?).await?;
    relay.store.retire(relay.owner).await?;
    let grants = scene.idle_relay().await?.acquire(usize::MAX).await?;
    assert!(grants.iter().all(|grant| grant.crashes == 0));
    Ok(())
}

async fn crashes_survive_a_release(scene: Scene) -> CaseResult {
    let (mut relay, _) = crash(&scene, &scene.relay().await?).await?;
    relay.release(&[LANE]).await?;
    let grant = &scene.idle_relay().await?.acquire(usize::MAX).await?[0];
    assert_eq!((grant.lane, grant.crashes), (LANE, 1));
    Ok(())
}

async fn a_relay_that_lives_absolves_its_lanes(scene: Scene) -> CaseResult {
    let (relay, _) = crash(&scene, &scene.relay().await?).await?;
    let stranger = scene.idle_relay().await?;
    stranger.store.absolve(stranger.owner, &[6]).await?;
    relay.store.absolve(relay.owner, &[LANE]).await?;
    let mut next = scene.idle_relay().await?;
    relay.vanish(&next).await?;
    scene.subject.relay.evict().await?;
    for grant in next.acquire(usize::MAX).await? {
        let expected = if grant.lane == LANE { 1 } else { 2 };
        assert_eq!(grant.crashes, expected, "lane {}", grant.lane);
    }
    Ok(())
}

fn place(seq: i64, leg: Option<&str>) -> Place {
    Place {
        room: leg.map_or(Room::Ready, |_| Room::Waiting),
        lane: LANE,
        seq,
        id: Uuid::from_u128(seq.unsigned_abs().into()).into(),
        leg: leg.map(Into::into),
        spot: 0,
    }
}

async fn a_suspect_is_remembered_over_an_eviction(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    for (crashes, leg) in [(1, None), (2, None), (1, Some("sink")), (2, Some("sink"))] {
        relay.store.suspect(relay.owner, LANE, Some(&place(42, leg))).await?;
        let (next, grant) = crash(&scene, &relay).await?;
        let expected = Suspect {
            seq: 42,
            id: Uuid::from_u128(42).into(),
            leg: leg.map(Into::into),
            crashes,
        };
        assert_eq!(grant.suspect, Some(expected));
        relay = next;
    }
    // It stays suspect even when the next owner vanishes before it comes to it.
    let (_, grant) = crash(&scene, &relay).await?;
    assert_eq!(grant.suspect.map(|suspect| suspect.crashes), Some(3));
    Ok(())
}

async fn another_suspect_starts_from_none(scene: Scene) -> CaseResult {
    let relay = scene.relay().await?;
    relay.store.suspect(relay.owner, LANE, Some(&place(1, None))).await?;
    let (relay, _) = crash(&scene, &relay).await?;
    relay.store.suspect(relay.owner, LANE, Some(&place(2, None))).await?;
    let (_, grant) = crash(&scene, &relay).await?;
    let suspect = grant.suspect.expect("there is one");
    assert_eq!((suspect.seq, suspect.crashes, grant.crashes), (2, 1, 2));
    Ok(())
}

async fn a_suspect_that_is_done_with_is_forgotten(scene: Scene) -> CaseResult {
    let relay = scene.relay().await?;
    relay
        .store
        .suspect(relay.owner, LANE, Some(&place(1, Some("sink"))))
        .await?;
    relay.store.suspect(relay.owner, LANE, None).await?;
    let (relay, grant) = crash(&scene, &relay).await?;
    assert_eq!(grant.suspect, None);
    // Its crashes are forgotten with it.
    relay
        .store
        .suspect(relay.owner, LANE, Some(&place(1, Some("sink"))))
        .await?;
    let (_, grant) = crash(&scene, &relay).await?;
    assert_eq!(grant.suspect.map(|suspect| suspect.crashes), Some(1));
    Ok(())
}

async fn a_suspect_of_a_clean_release_is_forgotten(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    relay.store.suspect(relay.owner, LANE, Some(&place(1, None))).await?;
    relay.release(&[LANE]).await?;
    let grants = relay.acquire(1).await?;
    assert_eq!((grants[0].lane, &grants[0].suspect), (LANE, &None));
    Ok(())
}

async fn only_the_owner_names_a_suspect(scene: Scene) -> CaseResult {
    let (relay, stranger) = (scene.relay().await?, scene.idle_relay().await?);
    // A store may refuse it or pass it over; nothing is noted either way.
    let passed_over =
        |noted: sendoff::Result<()>| noted.map_or_else(|error| error.kind() == ErrorKind::LeaseLost, |()| true);
    assert!(passed_over(
        stranger
            .store
            .suspect(stranger.owner, LANE, Some(&place(1, None)))
            .await
    ));
    let (relay, grant) = crash(&scene, &relay).await?;
    assert_eq!(grant.suspect, None);
    relay.store.suspect(relay.owner, LANE, Some(&place(2, None))).await?;
    assert!(passed_over(stranger.store.suspect(stranger.owner, LANE, None).await));
    let (_, grant) = crash(&scene, &relay).await?;
    assert_eq!(grant.suspect.map(|suspect| suspect.seq), Some(2));
    Ok(())
}
