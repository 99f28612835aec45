//! The order of a key.

use super::*;

#[tokio::test]
async fn one_message_of_a_key_is_with_a_sink_at_a_time() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(
        vec![
            row(1, Some("k")),
            row(2, Some("k")),
            row(3, Some("other")),
            row(4, None),
        ],
        Instant::now(),
    );
    let first = dispatcher.next_batch(0, Instant::now());
    assert_eq!(seqs(&first), [1, 3, 4]);
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [] as [i64; 0]);
    answer(&mut dispatcher, first, &Outcome::Delivered);
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [2]);
}

#[tokio::test]
async fn followers_of_a_failed_head_are_held_and_so_are_those_read_later() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answer(&mut dispatcher, batch, &temporary());
    dispatcher.take(vec![row(3, Some("k")), row(4, Some("free"))], Instant::now());
    assert_eq!(
        verdicts(&dispatcher.take_settlements(9).settlements),
        [(1, "retry"), (2, "blocked"), (3, "blocked")]
    );
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [4]);
}

#[tokio::test]
async fn a_freed_key_stays_blocked_while_a_held_row_is_on_its_way() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![waiting(1, "k")], Instant::now());
    let head = dispatcher.next_batch(0, Instant::now());
    answer(&mut dispatcher, head, &Outcome::Delivered);
    let first = dispatcher.take_settlements(9);
    dispatcher.take(vec![row(2, Some("k"))], Instant::now());
    let second = dispatcher.take_settlements(9);
    assert_eq!(verdicts(&second.settlements), [(2, "blocked")]);
    dispatcher.settled(first, &freed("k").into(), Instant::now());
    // Row 2 is not in the waiting table yet, or due there: row 3 would overtake it.
    dispatcher.take(vec![row(3, Some("k"))], Instant::now());
    let third = dispatcher.take_settlements(9);
    assert_eq!(verdicts(&third.settlements), [(3, "blocked")]);
    dispatcher.settled(second, &SettleReport::default().into(), Instant::now());
    dispatcher.settled(third, &freed("k").into(), Instant::now());
    dispatcher.take(vec![row(4, Some("k"))], Instant::now());
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [4]);
}

#[tokio::test]
async fn the_followers_of_a_dead_head_wait_go_on_or_never_waited() {
    for (head, dead, then) in [
        (OnFailure::Block, "dead, blocks", "blocked"),
        (OnFailure::Skip, "dead", "goes"),
        (OnFailure::Park, "dead", "goes"),
    ] {
        let mut dispatcher = dispatcher_with(head, &["a"], 1);
        dispatcher.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
        let batch = dispatcher.next_batch(0, Instant::now());
        answer(&mut dispatcher, batch, &temporary());
        let settlements = dispatcher.take_settlements(9);
        if then == "blocked" {
            assert_eq!(verdicts(&settlements.settlements), [(1, dead), (2, "blocked")]);
        } else {
            assert_eq!(verdicts(&settlements.settlements), [(1, dead)]);
            assert!(
                dispatcher.next_batch(0, Instant::now()).is_none(),
                "not before the dead letter is written"
            );
            dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
            assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [2]);
        }
    }
}

#[tokio::test]
async fn a_parked_head_is_retried_beside_its_followers() {
    let mut dispatcher = dispatcher_with(OnFailure::Park, &["a"], 5);
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answer(&mut dispatcher, batch, &temporary());
    let settlements = dispatcher.take_settlements(9);
    assert_eq!(verdicts(&settlements.settlements), [(1, "parked")]);
    dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [2]);
}

#[tokio::test]
async fn a_follower_that_was_read_while_its_head_failed_is_held_again() {
    for written_before_the_page_comes in [false, true] {
        let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
        dispatcher.begin_read();
        dispatcher.take(vec![waiting(1, "k")], Instant::now());
        let batch = dispatcher.next_batch(0, Instant::now());
        // This read finds the second one due, because the first has not failed yet.
        dispatcher.begin_read();
        answer(&mut dispatcher, batch, &Outcome::Temporary("busy".into()));
        let mut settlements = dispatcher.take_settlements(9);
        assert_eq!(verdicts(&settlements.settlements), [(1, "retry")]);
        if written_before_the_page_comes {
            dispatcher.settled(
                std::mem::take(&mut settlements),
                &SettleReport::default().into(),
                Instant::now(),
            );
        }
        dispatcher.take(vec![waiting(2, "k")], Instant::now());
        assert!(
            dispatcher.next_batch(0, Instant::now()).is_none(),
            "it would overtake the first"
        );
        let held = dispatcher.take_settlements(9);
        assert_eq!(verdicts(&held.settlements), [(2, "blocked")]);
        settlements.entries.extend(held.entries);
        settlements.settlements.extend(held.settlements);
        dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());

        dispatcher.begin_read();
        dispatcher.take(vec![waiting(1, "k")], Instant::now());
        let batch = dispatcher.next_batch(0, Instant::now());
        answer(&mut dispatcher, batch, &Outcome::Delivered);
        let settlements = dispatcher.take_settlements(9);
        dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
        dispatcher.begin_read();
        dispatcher.take(vec![waiting(2, "k")], Instant::now());
        let batch = dispatcher.next_batch(0, Instant::now()).expect("now it is the head");
        assert_eq!(batch.outgoing[0].row_ref.seq, 2);
    }
}

#[tokio::test]
async fn a_follower_is_not_written_before_the_message_in_front_of_it() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a", "b"], 5);
    dispatcher.take(vec![row(1, Some("k")), waiting(2, "k")], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answer(&mut dispatcher, batch, &temporary());
    assert!(
        !dispatcher.has_settlements(),
        "the first is still open at the other sink"
    );
    let other = dispatcher.next_batch(1, Instant::now());
    answer(&mut dispatcher, other, &Outcome::Delivered);
    assert_eq!(
        verdicts(&dispatcher.take_settlements(9).settlements),
        [(1, "retry"), (2, "blocked")]
    );
}

/// A message that came too early holds up nobody, although it comes back from the waiting table.
#[tokio::test]
async fn what_comes_back_from_waiting_does_not_send_those_behind_ready_ones_to_wait() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(2, Some("k")), row(3, Some("k"))], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    dispatcher.take(vec![waiting(1, "k")], Instant::now());
    dispatcher.take(vec![row(4, Some("k"))], Instant::now());
    assert!(
        dispatcher.take_settlements(9).settlements.is_empty(),
        "it is not held while the third is ready"
    );
    let mut arrived = seqs(&batch);
    let mut next = batch;
    while next.is_some() {
        answer(&mut dispatcher, next, &Outcome::Delivered);
        next = dispatcher.next_batch(0, Instant::now());
        arrived.extend(seqs(&next));
    }
    assert_eq!(arrived, [2, 3, 1, 4]);
}

#[tokio::test]
async fn a_follower_that_expires_does_not_let_others_pass_the_failed_one() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![waiting(1, "k")], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answer(&mut dispatcher, batch, &Outcome::Temporary("no".into()));
    // A read that began before brings them.
    let Row::Message(expired) = waiting(2, "k") else {
        unreachable!()
    };
    dispatcher.take(vec![Row::Expired(expired), waiting(3, "k")], Instant::now());
    assert!(dispatcher.next_batch(0, Instant::now()).is_none());
    assert_eq!(
        verdicts(&dispatcher.take_settlements(9).settlements),
        [(1, "retry"), (2, "dead"), (3, "blocked")]
    );
}
