//! Lanes and messages that are dropped, given back and lost.

use super::*;

#[tokio::test]
async fn what_a_lost_lane_had_in_flight_is_dropped_without_a_word() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    dispatcher.lose(&[1]);
    answer(&mut dispatcher, batch, &Outcome::Delivered);
    assert_eq!((dispatcher.in_flight(), dispatcher.has_settlements()), (0, false));
    assert_eq!(dispatcher.bytes_in_flight(), 0);
}

#[tokio::test]
async fn a_lane_is_given_back_once_its_sinks_have_answered() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    dispatcher.take(vec![row(2, None)], Instant::now());
    dispatcher.leave(&[1]);
    assert!(dispatcher.ready_to_leave().is_empty());
    answer(&mut dispatcher, batch, &Outcome::Delivered);
    let settlements = dispatcher.take_settlements(9);
    assert_eq!(verdicts(&settlements.settlements), [(1, "delivered")]);
    dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
    assert_eq!(dispatcher.ready_to_leave(), [1]);
}

#[tokio::test]
async fn what_queues_behind_a_message_that_was_not_sent_is_read_again_with_it() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    let ticket = dispatcher.next_batch(0, Instant::now()).unwrap().tickets[0];
    dispatcher.not_sent(ticket);
    assert_eq!(forgotten(&mut dispatcher), [1, 2]);
    assert_eq!(dispatcher.in_flight(), 0);
    dispatcher.begin_read();
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [1]);
}

/// A message for the last sink only.
fn for_last_sink(seq: i64, key: &str) -> Row {
    let Row::Message(message) = row(seq, Some(key)) else {
        unreachable!()
    };
    Row::Message(Arc::new(Outgoing {
        topic: "last".to_owned(),
        ..(*message).clone()
    }))
}

#[tokio::test]
async fn a_message_that_was_begun_at_another_sink_does_not_overtake_one_that_is_put_down() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a", "b"], 5);
    let rows = vec![for_last_sink(1, "k"), row(2, Some("k")), for_last_sink(3, "k")];
    dispatcher.take(rows, Instant::now());
    let at_a = dispatcher.next_batch(0, Instant::now());
    assert_eq!(seqs(&at_a), [2]);
    dispatcher.put_down_all();
    answer(&mut dispatcher, at_a, &Outcome::Delivered);
    for seq in [1, 2] {
        let at_b = dispatcher.next_batch(1, Instant::now());
        assert_eq!(seqs(&at_b), [seq]);
        answer(&mut dispatcher, at_b, &Outcome::Delivered);
    }
    assert!(
        dispatcher.next_batch(1, Instant::now()).is_none(),
        "what is behind them was put down"
    );
}

#[tokio::test]
async fn a_message_that_was_not_sent_stays_in_front_of_one_that_another_sink_has() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a", "b"], 5);
    dispatcher.take(
        vec![for_last_sink(1, "k"), row(2, Some("k")), row(3, Some("k"))],
        Instant::now(),
    );
    let at_a = dispatcher.next_batch(0, Instant::now());
    assert_eq!(seqs(&at_a), [2]);
    answer(&mut dispatcher, at_a, &Outcome::Delivered);
    let ticket = dispatcher.next_batch(1, Instant::now()).unwrap().tickets[0];
    dispatcher.not_sent(ticket);
    // The second has to be written down for its other sink. In the ready table the first would be found behind it.
    let decided = dispatcher.take_settlements(10);
    assert_eq!(verdicts(&decided.settlements), [(1, "down"), (2, "delivered")]);
    assert_eq!(decided.settlements[1].deliveries[1].verdict, Verdict::Blocked);
    assert!(forgotten(&mut dispatcher).is_empty());
}

#[tokio::test]
async fn what_a_read_under_way_brings_does_not_overtake_a_message_that_was_not_sent() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, Some("k"))], Instant::now());
    let ticket = dispatcher.next_batch(0, Instant::now()).unwrap().tickets[0];
    dispatcher.begin_read();
    dispatcher.not_sent(ticket);
    dispatcher.take(vec![row(2, Some("k")), row(3, Some("other"))], Instant::now());
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [3]);
    assert_eq!(forgotten(&mut dispatcher), [1, 2]);
}
