//! Paused topics.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_message_of_a_paused_topic_waits_only_by_news_that_are_younger_than_it() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    let paused = [("topic".to_owned(), "t".to_owned())];
    let before = Instant::now();
    dispatcher.pause(&paused, before, before);
    tokio::time::advance(Duration::from_millis(1)).await;
    dispatcher.claim(Claimed {
        at: Instant::now(),
        caught_up: None,
    });
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("k")), row(3, None)], Instant::now());
    assert!(dispatcher.is_in_doubt() && dispatcher.next_batch(0, Instant::now()).is_none());
    dispatcher.pause(&paused, before, Instant::now());
    assert!(
        dispatcher.is_in_doubt() && !dispatcher.has_settlements(),
        "the pause may have ended since"
    );
    dispatcher.pause(&paused, Instant::now(), Instant::now());
    assert_eq!(
        verdicts(&dispatcher.take_settlements(9).settlements),
        [(1, "paused"), (2, "blocked"), (3, "paused")]
    );
    assert!(!dispatcher.is_in_doubt());
}

#[tokio::test]
async fn what_is_in_doubt_goes_on_in_its_order_when_the_topic_is_paused_no_longer() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.pause(&[("topic".to_owned(), "t".to_owned())], Instant::now(), Instant::now());
    dispatcher.take(vec![row(1, Some("k")), row(2, Some("k"))], Instant::now());
    assert!(
        dispatcher.pause(&[], Instant::now(), Instant::now()),
        "something goes on"
    );
    let first = dispatcher.next_batch(0, Instant::now());
    assert_eq!(seqs(&first), [1]);
    answer(&mut dispatcher, first, &Outcome::Delivered);
    assert_eq!(seqs(&dispatcher.next_batch(0, Instant::now())), [2]);
}
