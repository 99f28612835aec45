use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::store::DeliverySettlement;

const LANE: Lane = 7;

fn settlement(table: Table, seq: i64, sink: Option<&str>, epoch: i64, verdicts: &[(&str, Verdict)]) -> Settlement {
    Settlement {
        row_ref: RowRef {
            table,
            lane: LANE,
            seq,
            id: Uuid::from_u128(seq.unsigned_abs().into()).into(),
            sink: sink.map(Arc::from),
            locator: 0,
        },
        epoch,
        deliveries: verdicts
            .iter()
            .map(|(sink, verdict)| DeliverySettlement {
                sink: Arc::from(*sink),
                verdict: verdict.clone(),
            })
            .collect(),
        key: Some(Arc::from("k")),
        attempts: 3,
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
        settlement(Table::Ready, 1, None, 1, &[]),
        settlement(Table::Ready, 2, None, 2, &[]),
    ];
    assert_eq!(SettlePlan::epochs(&all), held());
    let plan = SettlePlan::new(&all, &held(), false);
    assert_eq!(plan.delivered, [&all[1].row_ref]);
    assert!(SettlePlan::new(&all, &BTreeMap::new(), false).delivered.is_empty());
}

#[test]
fn ready_rows_that_every_sink_confirmed_are_the_usual_case() {
    let all = [
        settlement(Table::Ready, 1, None, 2, &[]),
        settlement(Table::Ready, 2, None, 2, &[("a", Verdict::Delivered)]),
    ];
    let plan = SettlePlan::new(&all, &held(), false);
    assert!(plan.only_delivered() && plan.delivered.len() == 2);
    for other in [
        settlement(Table::Waiting, 1, Some("a"), 2, &[]),
        settlement(Table::Waiting, 1, Some("a"), 2, &[("a", retry(RetryState::Retry))]),
        settlement(Table::Waiting, 1, None, 2, &[("", Verdict::Blocked)]),
        settlement(Table::Ready, 1, None, 2, &[("a", dead(true))]),
    ] {
        assert!(!SettlePlan::new(&[other], &held(), false).only_delivered());
    }
}

#[test]
fn a_ready_row_falls_into_its_deliveries() {
    let verdicts = [
        ("a", Verdict::Delivered),
        ("b", retry(RetryState::Deferred)),
        ("c", Verdict::Blocked),
        ("d", dead(true)),
    ];
    let all = [settlement(Table::Ready, 5, None, 2, &verdicts)];
    let plan = SettlePlan::new(&all, &held(), false);
    assert_eq!((plan.wait_ready.len(), plan.wait_ready[0].sink), (1, "b"));
    assert_eq!(
        (plan.block_ready.len(), plan.block_ready[0].state_word()),
        (1, "blocked")
    );
    assert_eq!((plan.die_ready.len(), plan.die_ready[0].sink), (1, "d"));
    assert_eq!(plan.remove_ready, [&all[0].row_ref]);
    assert!(plan.delivered.is_empty() && plan.behind.is_empty() && plan.gone.is_empty());
}

#[test]
fn a_row_that_waits_for_one_sink_is_that_sinks_alone() {
    let verdicts: [&[(&str, Verdict)]; 2] = [&[], &[("other", Verdict::Delivered)]];
    for verdicts in verdicts {
        let all = [settlement(Table::Waiting, 5, Some("a"), 2, verdicts)];
        let plan = SettlePlan::new(&all, &held(), false);
        assert_eq!(plan.done, [&all[0].row_ref]);
        assert_eq!(plan.gone.keys().collect::<Vec<_>>(), [&(LANE, "k", "a")]);
    }
    let all = [settlement(Table::Waiting, 5, Some("a"), 2, &[("other", dead(false))])];
    let plan = SettlePlan::new(&all, &held(), false);
    assert_eq!((plan.die_waiting[0].sink, plan.remove_waiting.len()), ("a", 1));
}

#[test]
fn a_parked_row_lets_its_followers_go_and_a_retried_one_does_not() {
    for (verdict, gone) in [
        (retry(RetryState::Parked), true),
        (retry(RetryState::Retry), false),
        (retry(RetryState::Deferred), false),
        (dead(false), true),
        (dead(true), false),
        (Verdict::Blocked, false),
        (Verdict::Delivered, true),
    ] {
        let all = [settlement(Table::Waiting, 5, Some("a"), 2, &[("a", verdict.clone())])];
        let plan = SettlePlan::new(&all, &held(), false);
        let found = (!plan.gone.is_empty(), !plan.behind.is_empty());
        assert_eq!(found, (gone, !gone), "{verdict:?}");
    }
}

#[test]
fn an_unrouted_row_that_waits_without_a_sink_stays_where_it_is() {
    for verdict in [retry(RetryState::Retry), Verdict::Blocked] {
        let all = [settlement(Table::Waiting, 5, None, 2, &[("", verdict)])];
        let plan = SettlePlan::new(&all, &held(), false);
        assert_eq!(plan.wait_again.len() + plan.block_again.len(), 1);
        assert!(plan.split.is_empty() && plan.block_split.is_empty());
        assert!(plan.remove_waiting.is_empty() && plan.done.is_empty() && plan.gone.is_empty());
    }
    let all = [settlement(
        Table::Waiting,
        5,
        None,
        2,
        &[("a", retry(RetryState::Retry)), ("b", Verdict::Delivered)],
    )];
    let plan = SettlePlan::new(&all, &held(), false);
    assert_eq!((plan.split.len(), plan.remove_waiting.len()), (1, 1));
    assert!(plan.gone.contains_key(&(LANE, "k", "")) && plan.behind.contains_key(&(LANE, "k", "a")));
}

#[test]
fn a_row_is_copied_once_with_all_sinks_that_confirmed_it() {
    let both = [("a", Verdict::Delivered), ("b", Verdict::Delivered)];
    let some = [both[0].clone(), ("c", dead(true)), both[1].clone()];
    let none = [("c", retry(RetryState::Retry))];
    let all = [
        settlement(Table::Ready, 1, None, 2, &both),
        settlement(Table::Ready, 2, None, 2, &some),
        settlement(Table::Ready, 3, None, 2, &none),
        settlement(Table::Ready, 4, None, 2, &[]),
        settlement(Table::Waiting, 5, None, 2, &both),
        settlement(Table::Waiting, 6, None, 2, &some),
        settlement(Table::Waiting, 7, Some("d"), 2, &[]),
        settlement(Table::Waiting, 8, Some("d"), 2, &none),
    ];
    let copies = |steps: &[KeepStep<'_>]| {
        let copy = |step: &KeepStep<'_>| (step.row_ref.seq, step.sinks_json());
        steps.iter().map(copy).collect::<Vec<_>>()
    };
    let of = |seq: i64, sinks: &str| (seq, sinks.to_owned());
    let plan = SettlePlan::new(&all, &held(), true);
    let ready = [of(1, r#"["a","b"]"#), of(2, r#"["a","b"]"#), of(4, r#"[""]"#)];
    assert_eq!(copies(&plan.kept_ready), ready);
    let waiting = [of(5, r#"["a","b"]"#), of(6, r#"["a","b"]"#), of(7, r#"["d"]"#)];
    assert_eq!(copies(&plan.kept_waiting), waiting);
    let plan = SettlePlan::new(&all, &held(), false);
    assert!(
        plan.kept_ready.is_empty() && plan.kept_waiting.is_empty(),
        "nothing is kept"
    );
}

#[test]
fn blocked_rows_come_in_the_order_of_their_key() {
    let all = [9, 3, 6].map(|seq| settlement(Table::Ready, seq, None, 2, &[("a", Verdict::Blocked)]));
    let plan = SettlePlan::new(&all, &held(), false);
    let order: Vec<i64> = plan.held().map(|step| step.row_ref.seq).collect();
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
