//! How the message is found that makes relays crash.

use super::*;
use sendoff::store::Quarantined;

fn suspicious(crashes: u32, quarantined: Option<Quarantined>) -> Dispatcher {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    let grant = LaneGrant {
        quarantined,
        ..grant_after_crashes(crashes)
    };
    dispatcher.gain(&[grant], Vec::new(), Instant::now());
    dispatcher
}

fn quarantined(first: i64, last: i64, crashes: u32) -> Quarantined {
    let alone = first == last;
    Quarantined {
        first,
        last,
        id: alone.then(|| sendoff::Uuid::from_u128(first.unsigned_abs().into()).into()),
        sink: None,
        crashes,
    }
}

fn next_group(dispatcher: &mut Dispatcher) -> Vec<i64> {
    let group = dispatcher.next_group(Instant::now());
    group.map_or_else(Vec::new, |(_, row_refs)| {
        row_refs.iter().map(|row_ref| row_ref.seq).collect()
    })
}

fn deliver_group(dispatcher: &mut Dispatcher) {
    dispatcher.group_noted(Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answer(dispatcher, batch, &Outcome::Delivered);
    settle(dispatcher);
}

fn settle(dispatcher: &mut Dispatcher) {
    let settlements = dispatcher.take_settlements(100);
    dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
}

#[tokio::test]
async fn a_message_that_crashed_relays_while_alone_is_dead() {
    let mut dispatcher = suspicious(4, Some(quarantined(7, 7, 2)));
    dispatcher.take(vec![row(6, None), row(7, Some("k"))], Instant::now());
    assert!(
        dispatcher.next_batch(0, Instant::now()).is_none(),
        "nothing goes before it is noted as quarantined message"
    );
    assert_eq!(next_group(&mut dispatcher), [6]);
    assert!(next_group(&mut dispatcher).is_empty(), "one group at a time");
    deliver_group(&mut dispatcher);
    assert_eq!(next_group(&mut dispatcher), [7]);
    dispatcher.group_noted(Instant::now());
    let settlements = dispatcher.take_settlements(9);
    assert_eq!(verdicts(&settlements.settlements), [(7, "dead, blocks")]);
    assert_eq!(
        &*settlements.settlements[0].deliveries[0].sink, "a",
        "it holds up its key at its sink"
    );
    dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
    dispatcher.take(vec![row(8, Some("k"))], Instant::now());
    assert!(next_group(&mut dispatcher).is_empty());
    assert_eq!(verdicts(&dispatcher.take_settlements(9).settlements), [(8, "blocked")]);
}

#[tokio::test]
async fn messages_go_in_groups_and_those_of_a_group_that_a_relay_died_on_go_alone() {
    let mut dispatcher = suspicious(3, Some(quarantined(4, 5, 1)));
    dispatcher.take((1..=7).map(|seq| row(seq, None)).collect(), Instant::now());
    for group in [vec![1, 2, 3], vec![4], vec![5], vec![6, 7]] {
        assert_eq!(next_group(&mut dispatcher), group);
        deliver_group(&mut dispatcher);
    }
    assert!(next_group(&mut dispatcher).is_empty());
    assert_eq!(
        dispatcher.void_note(),
        Some(1),
        "the store is told that nothing is under suspicion"
    );
    assert_eq!(dispatcher.void_note(), None);
}

#[tokio::test]
async fn a_group_waits_until_nothing_else_is_in_flight() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    let other = LaneGrant {
        lane: 2,
        ..grant_after_crashes(2)
    };
    dispatcher.gain(&[other], Vec::new(), Instant::now());
    dispatcher.take(vec![row(2, None)], Instant::now());
    assert!(
        dispatcher.next_batch(0, Instant::now()).is_none(),
        "all lanes are in quarantine"
    );
    assert!(
        next_group(&mut dispatcher).is_empty(),
        "the group would be blamed for the other"
    );
    answer(&mut dispatcher, batch, &Outcome::Delivered);
    settle(&mut dispatcher);
    assert_eq!(next_group(&mut dispatcher), [2]);
}

#[tokio::test]
async fn a_group_that_could_not_be_noted_is_tried_again_in_order() {
    let mut dispatcher = suspicious(2, None);
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    assert_eq!(next_group(&mut dispatcher), [1, 2]);
    dispatcher.group_not_noted();
    assert_eq!((next_group(&mut dispatcher), dispatcher.in_flight()), (vec![1, 2], 2));
}

#[tokio::test]
async fn quarantine_ends_after_a_window_or_when_nothing_is_left() {
    // The window of these tests is 16.
    let mut dispatcher = suspicious(2, None);
    dispatcher.take((1..=40).map(|seq| row(seq, None)).collect(), Instant::now());
    assert!(dispatcher.clear_quarantine(true, Instant::now()).is_empty());
    next_group(&mut dispatcher);
    deliver_group(&mut dispatcher);
    assert_eq!(dispatcher.clear_quarantine(false, Instant::now()), [1]);
    dispatcher.take(vec![row(41, None)], Instant::now());
    assert_eq!(
        seqs(&dispatcher.next_batch(0, Instant::now())),
        [41],
        "it goes as usual"
    );

    let mut dispatcher = suspicious(2, None);
    assert!(
        dispatcher.clear_quarantine(false, Instant::now()).is_empty(),
        "nothing was read yet"
    );
    assert_eq!(dispatcher.clear_quarantine(true, Instant::now()), [1]);
}

#[tokio::test(start_paused = true)]
async fn quarantine_ends_after_a_while_although_a_sink_hangs() {
    let mut dispatcher = suspicious(2, None);
    dispatcher.take((1..=70).map(|seq| row(seq, None)).collect(), Instant::now());
    next_group(&mut dispatcher);
    dispatcher.group_noted(Instant::now());
    assert_eq!(dispatcher.next_batch(0, Instant::now()).unwrap().tickets.len(), 64);
    tokio::time::advance(Duration::from_secs(299)).await;
    assert!(dispatcher.clear_quarantine(true, Instant::now()).is_empty());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(dispatcher.clear_quarantine(true, Instant::now()), [1]);
    assert_eq!(dispatcher.next_batch(0, Instant::now()).unwrap().tickets.len(), 6);
}

#[tokio::test]
async fn messages_that_no_sink_could_take_do_not_end_a_quarantine() {
    let mut dispatcher = suspicious(2, None);
    dispatcher.take((1..=70).map(|seq| row(seq, None)).collect(), Instant::now());
    next_group(&mut dispatcher);
    dispatcher.group_noted(Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    let (first, rest) = (batch.as_ref().map(|batch| batch.tickets.len()), 6);
    assert_eq!(first, Some(64));
    answer(&mut dispatcher, batch, &Outcome::SinkDown("down".into()));
    settle(&mut dispatcher);
    assert_eq!(next_group(&mut dispatcher).len(), rest);
    dispatcher.group_noted(Instant::now());
    assert!(dispatcher.next_batch(0, Instant::now()).is_none(), "the sink is down");
}

#[tokio::test]
async fn a_single_crash_is_forgotten_after_a_while_without_a_quarantine() {
    tokio::time::pause();
    let mut dispatcher = suspicious(1, None);
    dispatcher.take(vec![row(1, None)], Instant::now());
    assert!(dispatcher.clear_quarantine(true, Instant::now()).is_empty());
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(dispatcher.clear_quarantine(true, Instant::now()), [1]);
}

#[tokio::test]
async fn what_is_in_quarantine_does_not_overtake_a_message_that_was_not_sent() {
    let mut dispatcher = suspicious(2, Some(quarantined(1, 3, 1)));
    dispatcher.take(
        vec![row(1, Some("k")), row(2, Some("k")), row(3, Some("other"))],
        Instant::now(),
    );
    assert_eq!(next_group(&mut dispatcher), [1]);
    dispatcher.group_noted(Instant::now());
    let ticket = dispatcher.next_batch(0, Instant::now()).unwrap().tickets[0];
    dispatcher.not_sent(ticket);
    assert_eq!(forgotten(&mut dispatcher), [1, 2]);
    assert_eq!(next_group(&mut dispatcher), [3]);
}

#[tokio::test]
async fn what_queues_is_not_overtaken_when_the_lane_with_the_crashes_is_given_away() {
    let mut dispatcher = suspicious(2, None);
    let other = LaneGrant {
        lane: 2,
        ..grant_after_crashes(0)
    };
    dispatcher.gain(&[other], Vec::new(), Instant::now());
    dispatcher.take(vec![row_of(2, 1, Some("k"))], Instant::now());
    dispatcher.lose(&[1]);
    dispatcher.take(vec![row_of(2, 2, Some("k"))], Instant::now());
    assert!(
        dispatcher.next_batch(0, Instant::now()).is_none(),
        "the one before it queues"
    );
    assert!(
        next_group(&mut dispatcher).is_empty(),
        "nothing is quarantined any more"
    );
    for seq in [1, 2] {
        let batch = dispatcher.next_batch(0, Instant::now()).unwrap();
        assert_eq!(batch.outgoing[0].row_ref.seq, seq);
        answer(&mut dispatcher, Some(batch), &Outcome::Delivered);
    }
}

#[tokio::test]
async fn what_waits_for_the_head_of_its_key_is_no_quarantine() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.gain(&[grant_after_crashes(2)], vec![blocked("k")], Instant::now());
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("other"))], Instant::now());
    assert_eq!(next_group(&mut dispatcher), [2]);
    assert_eq!(verdicts(&dispatcher.take_settlements(9).settlements), [(1, "blocked")]);
}
