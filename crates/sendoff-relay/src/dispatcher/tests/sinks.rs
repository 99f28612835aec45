//! Verdicts, and sinks that are down or called too early.

use super::*;

#[tokio::test]
async fn deliveries_are_settled_together_and_listed_unless_all_are_delivered() {
    for (outcome, listed) in [(temporary(), vec!["a", "b"]), (Outcome::Delivered, vec![])] {
        let mut dispatcher = dispatcher_with(OnFailure::Block, &["a", "b"], 5);
        dispatcher.take(vec![row(1, None)], Instant::now());
        let (a, b) = (
            dispatcher.next_batch(0, Instant::now()),
            dispatcher.next_batch(1, Instant::now()),
        );
        answer(&mut dispatcher, a, &Outcome::Delivered);
        assert!(!dispatcher.has_settlements());
        answer(&mut dispatcher, b, &outcome);
        let decided = dispatcher.take_settlements(9);
        let deliveries = &decided.settlements[0].deliveries;
        assert_eq!(
            deliveries.iter().map(|delivery| &*delivery.sink).collect::<Vec<_>>(),
            listed
        );
        assert!(
            deliveries
                .first()
                .is_none_or(|delivery| delivery.verdict == Verdict::Delivered)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_down_charges_nothing_and_keeps_nothing_in_flight() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 1);
    dispatcher.take(vec![row(1, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    dispatcher.take(vec![row(2, None)], Instant::now());
    answer(&mut dispatcher, batch, &Outcome::SinkDown("gone".into()));
    dispatcher.take(vec![row(3, None)], Instant::now());
    let settlements = dispatcher.take_settlements(9);
    assert_eq!(
        verdicts(&settlements.settlements),
        [(1, "down"), (2, "down"), (3, "down")]
    );
    assert!(
        settlements
            .settlements
            .iter()
            .all(|s| matches!(s.deliveries[0].verdict, Verdict::Retry { charged: false, .. }))
    );
    assert!(dispatcher.all_shut(Instant::now()));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!dispatcher.all_shut(Instant::now()));
}

#[tokio::test]
async fn what_comes_too_early_waits_uncharged_and_those_behind_it_go_on() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 1);
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("k")), row(3, None)], Instant::now());
    let early = Outcome::NotYet(sendoff::Reason::new("at noon").retry_after(Duration::from_secs(90)));
    let batch = dispatcher.next_batch(0, Instant::now());
    assert_eq!(seqs(&batch), [1, 3]);
    answer(&mut dispatcher, batch, &early);
    let decided = dispatcher.take_settlements(9);
    assert_eq!(verdicts(&decided.settlements), [(1, "parked"), (3, "retry")]);
    let all_uncharged = decided.settlements.iter().all(|settlement| {
        let Verdict::Retry { charged, delay, .. } = settlement.deliveries[0].verdict else {
            return false;
        };
        !charged && delay == Duration::from_secs(90)
    });
    assert!(all_uncharged, "{:?}", decided.settlements);
    dispatcher.settled(decided, &SettleReport::default().into(), Instant::now());
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [2]);
}

#[tokio::test(start_paused = true)]
async fn what_comes_too_early_is_no_probe_of_a_sink_that_is_down() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 1);
    dispatcher.take(vec![row(1, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answer(&mut dispatcher, batch, &Outcome::SinkDown("gone".into()));
    tokio::time::advance(Duration::from_secs(2)).await;
    dispatcher.take(vec![row(2, None), row(3, None)], Instant::now());
    let probe = dispatcher.next_batch(0, Instant::now());
    let (first, other) = if seqs(&probe) == [2] { ([2], [3]) } else { ([3], [2]) };
    assert_eq!(seqs(&probe), first);
    answer(&mut dispatcher, probe, &Outcome::NotYet("later".into()));
    dispatcher.answered(0);
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), other, "another probe");
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_lane_was_lost_still_tells_of_its_sink() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, Some("k"))], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answer(&mut dispatcher, batch, &Outcome::SinkDown("down".into()));
    tokio::time::advance(Duration::from_secs(2)).await;
    dispatcher.take(vec![row(2, Some("other"))], Instant::now());
    let probe = dispatcher.next_batch(0, Instant::now());
    dispatcher.lose(&[1]);
    answer(&mut dispatcher, probe, &Outcome::Delivered);
    dispatcher.answered(0);
    dispatcher.gain(&[grant_after_crashes(0)], Vec::new(), Instant::now());
    dispatcher.take(vec![row(2, Some("other"))], Instant::now());
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [2]);
}
