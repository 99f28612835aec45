//! Crashes: what is remembered of relays that vanished.

use sendoff::store::{Lane, LaneGrant, Quarantined, RowRef, Table};
use sendoff::{ErrorKind, Uuid};

use super::manual_relay::ManualRelay;
use super::registry::{CaseResult, cases};
use super::scene::Scene;

cases![
    crashes_in_a_row_are_counted,
    a_clean_stop_forgets_crashes,
    crashes_survive_a_release,
    a_relay_that_lives_clears_quarantine_its_lanes,
    a_quarantine_is_remembered_over_an_eviction,
    another_quarantine_starts_from_none,
    a_quarantine_that_is_done_with_is_forgotten,
    a_quarantine_of_a_clean_release_is_forgotten,
    a_quarantine_that_another_left_survives_a_release,
    only_the_last_note_of_an_owner_is_under_suspicion,
    a_relay_that_shows_that_it_lives_has_not_crashed,
    a_relay_that_returns_before_anybody_missed_it_leaves_no_crash,
    a_long_row_of_crashes_is_counted_up_to_twenty,
    only_the_owner_names_a_quarantine,
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
        assert_eq!((grant.crashes, grant.quarantined), (crashes, None));
        relay = next;
    }
    Ok(())
}

async fn a_clean_stop_forgets_crashes(scene: Scene) -> CaseResult {
    let (relay, _) = crash(&scene, &scene.relay().await?).await?;
    relay.store.deregister(relay.owner).await?;
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

async fn a_relay_that_lives_clears_quarantine_its_lanes(scene: Scene) -> CaseResult {
    let (relay, _) = crash(&scene, &scene.relay().await?).await?;
    let stranger = scene.idle_relay().await?;
    stranger.store.clear_quarantine(stranger.owner, &[6]).await?;
    relay.store.clear_quarantine(relay.owner, &[LANE]).await?;
    let mut next = scene.idle_relay().await?;
    relay.vanish(&next).await?;
    scene.subject.relay.evict().await?;
    for grant in next.acquire(usize::MAX).await? {
        let expected = if grant.lane == LANE { 1 } else { 2 };
        assert_eq!(grant.crashes, expected, "lane {}", grant.lane);
    }
    Ok(())
}

fn row_ref(seq: i64, sink: Option<&str>) -> RowRef {
    RowRef {
        table: sink.map_or(Table::Ready, |_| Table::Waiting),
        lane: LANE,
        seq,
        id: Uuid::from_u128(seq.unsigned_abs().into()).into(),
        sink: sink.map(Into::into),
        locator: 0,
    }
}

/// The quarantined message of the lane, without its crashes, and these.
fn quarantine_in(grant: &LaneGrant) -> Option<(Quarantined, u32)> {
    let quarantined = grant.quarantined.clone()?;
    let crashes = quarantined.crashes;
    Some((
        Quarantined {
            crashes: 0,
            ..quarantined
        },
        crashes,
    ))
}

async fn a_quarantine_is_remembered_over_an_eviction(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    let one = |sink| vec![row_ref(42, sink)];
    let group = vec![row_ref(43, None), row_ref(41, Some("sink")), row_ref(42, None)];
    let noted = [
        (1, one(None)),
        (2, one(None)),
        (1, one(Some("sink"))),
        (2, one(Some("sink"))),
        (1, group.clone()),
        (2, group),
    ];
    for (crashes, rows) in noted {
        relay.store.quarantine(relay.owner, LANE, &rows).await?;
        let (next, grant) = crash(&scene, &relay).await?;
        let expected = Quarantined::of(&rows).expect("there are rows");
        assert_eq!(quarantine_in(&grant), Some((expected, crashes)));
        relay = next;
    }
    // It stays quarantined message when the next owner vanishes before it comes to it, and that is no crash on it.
    let (_, grant) = crash(&scene, &relay).await?;
    let quarantined = grant.quarantined.expect("it is remembered");
    assert_eq!((quarantined.first, quarantined.last, quarantined.crashes), (41, 43, 2));
    Ok(())
}

async fn another_quarantine_starts_from_none(scene: Scene) -> CaseResult {
    let relay = scene.relay().await?;
    relay.store.quarantine(relay.owner, LANE, &[row_ref(1, None)]).await?;
    let (relay, _) = crash(&scene, &relay).await?;
    relay.store.quarantine(relay.owner, LANE, &[row_ref(2, None)]).await?;
    let (_, grant) = crash(&scene, &relay).await?;
    let quarantined = grant.quarantined.expect("there is one");
    assert_eq!((quarantined.first, quarantined.crashes, grant.crashes), (2, 1, 2));
    Ok(())
}

async fn a_quarantine_that_is_done_with_is_forgotten(scene: Scene) -> CaseResult {
    let relay = scene.relay().await?;
    let row = [row_ref(1, Some("sink"))];
    relay.store.quarantine(relay.owner, LANE, &row).await?;
    relay.store.quarantine(relay.owner, LANE, &[]).await?;
    let (relay, grant) = crash(&scene, &relay).await?;
    assert_eq!(grant.quarantined, None);
    // Its crashes are forgotten with it.
    relay.store.quarantine(relay.owner, LANE, &row).await?;
    let (_, grant) = crash(&scene, &relay).await?;
    assert_eq!(grant.quarantined.map(|quarantined| quarantined.crashes), Some(1));
    Ok(())
}

async fn a_quarantine_of_a_clean_release_is_forgotten(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    relay.store.quarantine(relay.owner, LANE, &[row_ref(1, None)]).await?;
    relay.release(&[LANE]).await?;
    let grants = relay.acquire(1).await?;
    assert_eq!((grants[0].lane, &grants[0].quarantined), (LANE, &None));
    Ok(())
}

async fn a_quarantine_that_another_left_survives_a_release(scene: Scene) -> CaseResult {
    let relay = scene.relay().await?;
    relay.store.quarantine(relay.owner, LANE, &[row_ref(1, None)]).await?;
    let (mut relay, _) = crash(&scene, &relay).await?;
    relay.release(&[LANE]).await?;
    let grants = relay.acquire(1).await?;
    assert_eq!(
        grants[0].quarantined.as_ref().map(|quarantined| quarantined.crashes),
        Some(1)
    );
    relay.store.clear_quarantine(relay.owner, &[LANE]).await?;
    let (_, grant) = crash(&scene, &relay).await?;
    assert_eq!((grant.crashes, grant.quarantined), (1, None), "absolving forgets it");
    Ok(())
}

/// A relay works on one group at a time: what it noted before, in another lane, is not what it died on.
async fn only_the_last_note_of_an_owner_is_under_suspicion(scene: Scene) -> CaseResult {
    let other = |seq| RowRef {
        lane: 6,
        ..row_ref(seq, None)
    };
    let relay = scene.relay().await?;
    relay.store.quarantine(relay.owner, 6, &[other(1)]).await?;
    relay.store.quarantine(relay.owner, LANE, &[row_ref(2, None)]).await?;
    let mut next = scene.idle_relay().await?;
    relay.vanish(&next).await?;
    scene.subject.relay.evict().await?;
    let grants = next.acquire(usize::MAX).await?;
    let quarantined: Vec<_> = grants
        .iter()
        .filter_map(|grant| Some((grant.lane, grant.quarantined.as_ref()?.first)))
        .collect();
    assert_eq!(quarantined, [(LANE, 2)]);
    // What a dead relay left in another lane stays.
    next.store.quarantine(next.owner, 6, &[other(3)]).await?;
    let (_, grant) = crash(&scene, &next).await?;
    assert_eq!(
        quarantine_in(&grant).map(|(quarantined, crashes)| (quarantined.first, crashes)),
        Some((2, 1))
    );
    Ok(())
}

/// A relay that lost its lease, in an outage or because it was stopped for a while, has not crashed.
async fn a_relay_that_shows_that_it_lives_has_not_crashed(scene: Scene) -> CaseResult {
    let relay = scene.relay().await?;
    relay.store.quarantine(relay.owner, LANE, &[row_ref(7, None)]).await?;
    let (second, grant) = crash(&scene, &relay).await?;
    assert_eq!(
        (grant.crashes, quarantine_in(&grant).map(|quarantined| quarantined.1)),
        (1, Some(1))
    );
    second.store.quarantine(second.owner, LANE, &[row_ref(7, None)]).await?;
    let (third, grant) = crash(&scene, &second).await?;
    assert_eq!(
        (grant.crashes, quarantine_in(&grant).map(|quarantined| quarantined.1)),
        (2, Some(2))
    );
    relay.store.deregister(relay.owner).await?;
    let (fourth, grant) = crash(&scene, &third).await?;
    let counted = (grant.crashes, quarantine_in(&grant).map(|quarantined| quarantined.1));
    assert_eq!(
        counted,
        (2, Some(1)),
        "the second and the third, and on the quarantined message the second"
    );
    for gone in [second, third] {
        gone.store.deregister(gone.owner).await?;
    }
    let (_, grant) = crash(&scene, &fourth).await?;
    assert_eq!(
        (grant.crashes, quarantine_in(&grant).map(|quarantined| quarantined.1)),
        (1, Some(0))
    );
    Ok(())
}

async fn a_relay_that_returns_before_anybody_missed_it_leaves_no_crash(scene: Scene) -> CaseResult {
    let relay = scene.relay().await?;
    let mut next = scene.idle_relay().await?;
    relay.vanish(&next).await?;
    relay.store.deregister(relay.owner).await?;
    scene.subject.relay.evict().await?;
    let grants = next.acquire(usize::MAX).await?;
    assert!(!grants.is_empty() && grants.iter().all(|grant| grant.crashes == 0));
    Ok(())
}

async fn a_long_row_of_crashes_is_counted_up_to_twenty(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    for _ in 0..22 {
        relay.store.quarantine(relay.owner, LANE, &[row_ref(1, None)]).await?;
        relay = crash(&scene, &relay).await?.0;
    }
    let (_, grant) = crash(&scene, &relay).await?;
    assert!(grant.crashes >= 20 && grant.quarantined.is_some_and(|quarantined| quarantined.crashes >= 20));
    Ok(())
}

async fn only_the_owner_names_a_quarantine(scene: Scene) -> CaseResult {
    let (relay, stranger) = (scene.relay().await?, scene.idle_relay().await?);
    // A store may refuse it or pass it over; nothing is noted either way.
    let passed_over =
        |noted: sendoff::Result<()>| noted.map_or_else(|error| error.kind() == ErrorKind::LeaseLost, |()| true);
    let rows = [row_ref(1, None)];
    assert!(passed_over(
        stranger.store.quarantine(stranger.owner, LANE, &rows).await
    ));
    let (relay, grant) = crash(&scene, &relay).await?;
    assert_eq!(grant.quarantined, None);
    relay.store.quarantine(relay.owner, LANE, &[row_ref(2, None)]).await?;
    assert!(passed_over(stranger.store.quarantine(stranger.owner, LANE, &[]).await));
    let (_, grant) = crash(&scene, &relay).await?;
    assert_eq!(grant.quarantined.map(|quarantined| quarantined.first), Some(2));
    Ok(())
}
