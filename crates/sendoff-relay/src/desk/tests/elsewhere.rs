//! Relays with other routes.

use super::*;
use sendoff::store::Routes;

fn on_topic(row: Row, topic: &str) -> Row {
    match row {
        Row::Message(delivery) => {
            let mut delivery = Arc::unwrap_or_clone(delivery);
            delivery.topic = topic.to_owned();
            Row::Message(Arc::new(delivery))
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
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    let message = || on_topic(row(1, Some("k")), "new");
    assert!(desk.has_unroutable(&[message()]));
    desk.heed_routes(vec![routes("other", &["a"]), routes("new", &["a", "b"])]);
    assert!(!desk.has_unroutable(&[message()]));
    desk.take(vec![message(), row(2, Some("k"))], Instant::now());
    assert!(
        desk.next_batch(0, Instant::now()).is_none(),
        "neither it nor what comes behind it"
    );
    let settlements = desk.take_settlements(9);
    let legs: Vec<_> = settlements.settlements[0]
        .legs
        .iter()
        .map(|leg| leg.leg.to_string())
        .collect();
    assert_eq!(legs, ["a", "b"], "it waits for the sinks of the other relay");
    assert_eq!(verdicts(&settlements.settlements[1..]), [(2, "hold")]);
    desk.settled(settlements, &SettleReport::default().into(), Instant::now());
    // Read again, it is still the other's, although there is a sink of that name here.
    desk.take(vec![on_topic(waiting(1, "k"), "new")], Instant::now());
    assert!(desk.next_batch(0, Instant::now()).is_none());
    // The other relay is gone: what was routed by it goes where it was routed to.
    desk.take_settlements(9);
    desk.heed_routes(Vec::new());
    desk.take(vec![on_topic(waiting(3, "j"), "new")], Instant::now());
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [3]);
}

#[tokio::test]
async fn a_message_without_a_route_anywhere_is_dead_and_blocks_nobody() {
    let mut desk = desk_with(HeadPolicy::Block, &["a"], 5);
    desk.heed_routes(vec![routes("other", &["a"])]);
    desk.take(
        vec![on_topic(row(1, Some("k")), "new"), row(2, Some("k"))],
        Instant::now(),
    );
    assert_eq!(verdicts(&desk.take_settlements(9).settlements), [(1, "dead")]);
    assert_eq!(seqs(&desk.next_batch(0, Instant::now())), [2]);
}
