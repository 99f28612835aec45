use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::store::LegSettlement;

const LANE: Lane = 7;

fn settlement(room: Room, seq: i64, leg: Option<&str>, epoch: i64, verdicts: &[(&str, Verdict)]) -> Settlement {
    Settlement {
        place: Place {
            room,
            lane: LANE,
            seq,
            id: Uuid::from_u128(seq.unsigned_abs().into()).into(),
            leg: leg.map(Arc::from),
            spot: 0,
        },
        epoch,
        legs: verdicts
            .iter()
            .map(|(leg, verdict)| LegSettlement {
                leg: Arc::from(*leg),
                verdict: verdict.clone(),
            })
            .collect(),
        key: Some(Arc::from("k")),
    }
}

fn retry(state: RetryState) -> Verdict {
    Verdict::Retry {
        state,
        delay: Duration::from_secs(1),
        charged: true,
        error: "no".to_owned(),
    }
}

fn dead(blocks: bool) -> Verdict {
    Verdict::Dead {
        reason: DeadReason::Permanent,
        error: "no".to_owned(),
        charged: true,
        blocks,
    }
}

fn held() -> BTreeMap<Lane, i64> {
    BTreeMap::from([(LANE, 2)])
}

#[test]
fn of_two_epochs_of_a_lane_the_older_is_void() {
    let all = [
        settlement(Room::Ready, 1, None, 1, &[]),
        settlement(Room::Ready, 2, None, 2, &[]),
    ];
    assert_eq!(SettlePlan::epochs(&all), held());
    let plan = SettlePlan::new(&all, &held());
    assert_eq!(plan.delivered, [&all[1].place]);
    assert!(SettlePlan::new(&all, &BTreeMap::new()).delivered.is_empty());
}

#[test]
fn ready_rows_that_every_sink_confirmed_are_the_usual_case() {
    let all = [
        settlement(Room::Ready, 1, None, 2, &[]),
        settlement(Room::Ready, 2, None, 2, &[("a", Verdict::Delivered)]),
    ];
    let plan = SettlePlan::new(&all, &held());
    assert!(plan.only_delivered() && plan.delivered.len() == 2);
    for other in [
        settlement(Room::Waiting, 1, Some("a"), 2, &[]),
        settlement(Room::Waiting, 1, Some("a"), 2, &[("a", retry(RetryState::Retry))]),
        settlement(Room::Waiting, 1, None, 2, &[("", Verdict::Hold)]),
        settlement(Room::Ready, 1, None, 2, &[("a", dead(true))]),
    ] {
        assert!(!SettlePlan::new(&[other], &held()).only_delivered());
    }
}

#[test]
fn a_ready_row_falls_into_its_legs() {
    let verdicts = [
        ("a", Verdict::Delivered),
        ("b", retry(RetryState::Down)),
        ("c", Verdict::Hold),
        ("d", dead(true)),
    ];
    let all = [settlement(Room::Ready, 5, None, 2, &verdicts)];
    let plan = SettlePlan::new(&all, &held());
    assert_eq!((plan.confirmed.len(), plan.confirmed[0].leg), (1, "a"));
    assert_eq!((plan.wait_ready.len(), plan.wait_ready[0].leg), (1, "b"));
    assert_eq!((plan.hold_ready.len(), plan.hold_ready[0].state_word()), (1, "held"));
    assert_eq!((plan.die_ready.len(), plan.die_ready[0].leg), (1, "d"));
    assert_eq!(plan.remove_ready, [&all[0].place]);
    assert!(plan.delivered.is_empty() && plan.behind.is_empty() && plan.gone.is_empty());
}

#[test]
fn a_row_that_waits_for_one_sink_is_that_sinks_alone() {
    let verdicts: [&[(&str, Verdict)]; 2] = [&[], &[("other", Verdict::Delivered)]];
    for verdicts in verdicts {
        let all = [settlement(Room::Waiting, 5, Some("a"), 2, verdicts)];
        let plan = SettlePlan::new(&all, &held());
        assert_eq!(plan.done, [&all[0].place]);
        assert_eq!(plan.gone.keys().collect::<Vec<_>>(), [&(LANE, "k", "a")]);
    }
    let all = [settlement(Room::Waiting, 5, Some("a"), 2, &[("other", dead(false))])];
    let plan = SettlePlan::new(&all, &held());
    assert_eq!((plan.die_waiting[0].leg, plan.remove_waiting.len()), ("a", 1));
}

#[test]
fn a_parked_row_lets_its_followers_go_and_a_retried_one_does_not() {
    for (verdict, gone) in [
        (retry(RetryState::Parked), true),
        (retry(RetryState::Retry), false),
        (retry(RetryState::Down), false),
        (dead(false), true),
        (dead(true), false),
        (Verdict::Hold, false),
        (Verdict::Delivered, true),
    ] {
        let all = [settlement(Room::Waiting, 5, Some("a"), 2, &[("a", verdict.clone())])];
        let plan = SettlePlan::new(&all, &held());
        let found = (!plan.gone.is_empty(), !plan.behind.is_empty());
        assert_eq!(found, (gone, !gone), "{verdict:?}");
    }
}

#[test]
fn an_unrouted_row_that_waits_without_a_sink_stays_where_it_is() {
    for verdict in [retry(RetryState::Retry), Verdict::Hold] {
        let all = [settlement(Room::Waiting, 5, None, 2, &[("", verdict)])];
        let plan = SettlePlan::new(&all, &held());
        assert_eq!(plan.wait_again.len() + plan.hold_again.len(), 1);
        assert!(plan.split.is_empty() && plan.hold_split.is_empty());
        assert!(plan.remove_waiting.is_empty() && plan.done.is_empty() && plan.gone.is_empty());
    }
    let all = [settlement(
        Room::Waiting,
        5,
        None,
        2,
        &[("a", retry(RetryState::Retry)), ("b", Verdict::Delivered)],
    )];
    let plan = SettlePlan::new(&all, &held());
    assert_eq!(
        (
            plan.split.len(),
            plan.confirmed_waiting.len(),
            plan.remove_waiting.len()
        ),
        (1, 1, 1)
    );
    assert!(plan.gone.contains_key(&(LANE, "k", "")) && plan.behind.contains_key(&(LANE, "k", "a")));
}

#[test]
fn held_rows_come_in_the_order_of_their_key() {
    let all = [9, 3, 6].map(|seq| settlement(Room::Ready, seq, None, 2, &[("a", Verdict::Hold)]));
    let plan = SettlePlan::new(&all, &held());
    let order: Vec<i64> = plan.held().map(|step| step.place.seq).collect();
    assert_eq!(order, [3, 6, 9]);
}

#[test]
fn an_error_is_cut_at_a_character_and_loses_its_nuls() {
    assert_eq!(kept_error("a\0b"), "ab");
    assert_eq!(kept_error(&"é".repeat(3000)).chars().count(), LONGEST_ERROR);
    assert_eq!(
        kept_error(&format!("a\0{}", "é".repeat(3000))).chars().count(),
        LONGEST_ERROR
    );
    assert_eq!(kept_error("short"), "short");
}
