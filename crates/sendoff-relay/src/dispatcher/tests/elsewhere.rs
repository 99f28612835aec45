//! Relays with other routes.

use super::*;
use sendoff::store::Routes;

fn on_topic(row: Row, topic: &str) -> Row {
    match row {
        Row::Message(outgoing) => {
            let mut outgoing = Arc::unwrap_or_clone(outgoing);
            outgoing.topic = topic.to_owned();
            Row::Message(Arc::new(outgoing))
        }
        other => other,
    }
}

fn routes(topic: &str, sinks: &[&str]) -> Routes {
    let sinks = sinks.iter().map(ToString::to_string).collect();
    Routes::new(vec![(topic.parse().unwrap(), sinks)])
}

#[tokio::test]
async fn a_message_without_a_route_is_left_to_the_relay_that_has_one() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    let message = || on_topic(row(1, Some("k")), "new");
    assert!(dispatcher.has_unroutable(&[message()]));
    dispatcher.heed_routes(vec![routes("other", &["a"]), routes("new", &["a", "b"])]);
    assert!(!dispatcher.has_unroutable(&[message()]));
    dispatcher.take(vec![message(), row(2, Some("k"))], Instant::now());
    assert!(
        dispatcher.next_batch(0, Instant::now()).is_none(),
        "neither it nor what comes behind it"
    );
    let settlements = dispatcher.take_settlements(9);
    let deliveries: Vec<_> = settlements.settlements[0]
        .deliveries
        .iter()
        .map(|delivery| delivery.sink.to_string())
        .collect();
    assert_eq!(deliveries, ["a", "b"], "it waits for the sinks of the other relay");
    assert_eq!(verdicts(&settlements.settlements[1..]), [(2, "blocked")]);
    dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
    // Read again, it is still the other's, although there is a sink of that name here.
    dispatcher.take(vec![on_topic(waiting(1, "k"), "new")], Instant::now());
    assert!(dispatcher.next_batch(0, Instant::now()).is_none());
    // The other relay is gone: what was routed by it goes where it was routed to.
    dispatcher.take_settlements(9);
    dispatcher.heed_routes(Vec::new());
    dispatcher.take(vec![on_topic(waiting(3, "j"), "new")], Instant::now());
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [3]);
}

#[tokio::test]
async fn a_message_without_a_route_anywhere_is_dead_and_blocks_nobody() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.heed_routes(vec![routes("other", &["a"])]);
    dispatcher.take(
        vec![on_topic(row(1, Some("k")), "new"), row(2, Some("k"))],
        Instant::now(),
    );
    assert_eq!(verdicts(&dispatcher.take_settlements(9).settlements), [(1, "dead")]);
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [2]);
}

#[tokio::test]
async fn messages_for_another_relay_keep_their_row_ref_in_their_key() {
    let new = |seq| on_topic(row(seq, Some("k")), "new");
    let dispatcher = || {
        let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
        dispatcher.heed_routes(vec![routes("new", &["a"])]);
        dispatcher
    };
    // One that goes to the other relay, and those behind it, whichever way they go.
    let mut first = dispatcher();
    first.take(vec![new(1), row(2, Some("k")), new(3)], Instant::now());
    assert_eq!(
        verdicts(&first.take_settlements(9).settlements),
        [(1, "down"), (2, "blocked"), (3, "blocked")]
    );
    // One that is with a sink here: what is behind it waits for the answer.
    for (outcome, expected) in [
        (Outcome::Delivered, [(1, "delivered"), (2, "down"), (3, "blocked")]),
        (
            Outcome::Temporary("no".into()),
            [(1, "retry"), (2, "blocked"), (3, "blocked")],
        ),
    ] {
        let mut dispatcher = dispatcher();
        dispatcher.take(vec![row(1, Some("k")), new(2), row(3, Some("k"))], Instant::now());
        assert!(!dispatcher.has_settlements());
        let batch = dispatcher.next_batch(0, Instant::now());
        answer(&mut dispatcher, batch, &outcome);
        assert_eq!(verdicts(&dispatcher.take_settlements(9).settlements), expected);
        assert!(dispatcher.next_batch(0, Instant::now()).is_none());
    }
}

#[tokio::test]
async fn a_lane_with_messages_for_another_relay_is_told_once() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.heed_routes(vec![routes("new", &["b"])]);
    dispatcher.take(vec![row(1, None)], Instant::now());
    assert!(dispatcher.take_stranded().is_empty());
    dispatcher.take(vec![on_topic(row(2, None), "new")], Instant::now());
    assert_eq!(dispatcher.take_stranded(), [1]);
    assert!(dispatcher.take_stranded().is_empty());
}
