use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{LegSettlement, Place};

use super::*;

fn settlement(room: Room, seq: i64, leg: Option<&str>, epoch: i64, verdicts: &[(&str, Verdict)]) -> Settlement {
    Settlement {
        place: Place {
            room,
            lane: 7,
            seq,
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

#[test]
fn a_settlement_of_an_old_epoch_is_passed_over() {
    let epochs = BTreeMap::from([(7, 2)]);
    let all = [
        settlement(Room::Ready, 1, None, 2, &[]),
        settlement(Room::Ready, 2, None, 2, &[("a", Verdict::Delivered)]),
        settlement(Room::Ready, 3, None, 1, &[("a", retry(RetryState::Retry))]),
    ];
    let sorted = Sorted::new(&all, &epochs);
    assert_eq!(sorted.delivered, [json!([7, 1]), json!([7, 2])]);
    assert!(sorted.ready.is_empty() && sorted.moved_ready.is_empty());
}

#[test]
fn a_parked_row_lets_its_followers_go_and_a_retried_one_does_not() {
    let epochs = BTreeMap::from([(7, 2)]);
    for (state, gone) in [
        (RetryState::Parked, true),
        (RetryState::Retry, false),
        (RetryState::Down, false),
    ] {
        let all = [settlement(Room::Waiting, 5, Some("a"), 2, &[("a", retry(state))])];
        let sorted = Sorted::new(&all, &epochs);
        assert_eq!(
            (!sorted.gone.is_empty(), !sorted.behind.is_empty()),
            (gone, !gone),
            "{state:?}"
        );
    }
}

#[test]
fn a_row_that_stays_unrouted_is_not_removed() {
    let epochs = BTreeMap::from([(7, 2)]);
    let all = [settlement(Room::Waiting, 5, None, 2, &[("", retry(RetryState::Down))])];
    let sorted = Sorted::new(&all, &epochs);
    assert!(sorted.moved_waiting.is_empty() && sorted.done.is_empty() && sorted.split.is_empty());
    assert_eq!(sorted.again.len(), 1);
}

#[test]
fn an_error_is_cut_at_a_character_and_loses_its_nuls() {
    assert_eq!(kept("a\0b"), "ab");
    assert_eq!(kept(&"é".repeat(3000)).chars().count(), LONGEST_ERROR);
}
