//! Blocked keys that are free without a report.

use super::*;

/// Whether a message of the key would be held, by a look that changes nothing.
fn is_blocked(dispatcher: &mut Dispatcher, key: &str) -> bool {
    dispatcher.has_to_wait(&row(99, Some(key)))
}

#[tokio::test]
async fn a_blocked_key_that_the_store_does_not_know_any_more_is_forgotten() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    assert!(dispatcher.begin_recheck().is_empty(), "there is nothing to ask");
    dispatcher.gain(
        &[grant_after_crashes(0)],
        vec![blocked("stays"), blocked("discarded")],
        Instant::now(),
    );
    let lanes = dispatcher.begin_recheck();
    assert_eq!(lanes, [1]);
    dispatcher.recheck(&lanes, vec![blocked("stays")]);
    assert!(is_blocked(&mut dispatcher, "stays"));
    assert!(!is_blocked(&mut dispatcher, "discarded"));
}

#[tokio::test]
async fn a_key_that_was_blocked_while_the_store_was_asked_stays_blocked() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    let fail = |dispatcher: &mut Dispatcher, seq, key| {
        dispatcher.take(vec![row(seq, Some(key))], Instant::now());
        let batch = dispatcher.next_batch(0, Instant::now());
        answer(dispatcher, batch, &temporary());
        dispatcher.take_settlements(9)
    };
    let on_its_way = fail(&mut dispatcher, 1, "on its way");
    let before = fail(&mut dispatcher, 2, "written meanwhile");
    let lanes = dispatcher.begin_recheck();
    let during = fail(&mut dispatcher, 3, "failed meanwhile");
    dispatcher.settled(before, &SettleReport::default().into(), Instant::now());
    dispatcher.settled(during, &SettleReport::default().into(), Instant::now());
    dispatcher.take(vec![waiting(4, "retried meanwhile")], Instant::now());
    dispatcher.recheck(&lanes, Vec::new());
    let keys = [
        "on its way",
        "written meanwhile",
        "failed meanwhile",
        "retried meanwhile",
    ];
    assert!(keys.into_iter().all(|key| is_blocked(&mut dispatcher, key)));
    dispatcher.settled(on_its_way, &SettleReport::default().into(), Instant::now());
    let lanes = dispatcher.begin_recheck();
    dispatcher.recheck(&lanes, Vec::new());
    assert!(!keys.into_iter().any(|key| is_blocked(&mut dispatcher, key)));
}
