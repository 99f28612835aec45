//! Messages that a sink gives no answer for.

use super::*;

fn unknown() -> Outcome {
    Outcome::Unknown("no answer".into())
}

/// What the relay does with the answers for a batch.
fn answers(dispatcher: &mut Dispatcher, batch: &Option<Batch>, outcomes: &[Outcome]) {
    let tickets = batch.as_ref().unwrap().tickets.clone();
    dispatcher.begin_answers(0, outcomes, Instant::now());
    for (ticket, outcome) in tickets.into_iter().zip(outcomes) {
        dispatcher.outcome(0, ticket, outcome.clone(), Instant::now());
    }
    dispatcher.answered(0);
}

/// The verdict on the message of a single settlement: whether it is charged, and the pause.
fn verdict(dispatcher: &mut Dispatcher) -> (bool, Duration) {
    let settlements = dispatcher.take_settlements(9);
    let found = match &settlements.settlements[0].deliveries[0].verdict {
        Verdict::Retry { charged, delay, .. } => (*charged, *delay),
        other => panic!("{other:?}"),
    };
    dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
    found
}

async fn later(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_costs_nothing_and_waits_for_the_sink_however_often_it_comes() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 2);
    for _ in 0..10 {
        dispatcher.take(vec![waiting(1, "k")], Instant::now());
        let batch = dispatcher.next_batch(0, Instant::now());
        assert_eq!(seqs(&batch), [1]);
        answers(&mut dispatcher, &batch, &[unknown()]);
        let (charged, delay) = verdict(&mut dispatcher);
        assert!(!charged && delay <= Duration::from_secs(5), "{delay:?}");
        later(5).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_stays_without_an_answer_while_others_get_one_is_charged() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answers(&mut dispatcher, &batch, &[unknown()]);
    assert!(!verdict(&mut dispatcher).0);
    later(5).await;
    dispatcher.take(vec![row(2, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answers(&mut dispatcher, &batch, &[Outcome::Delivered]);
    let settlements = dispatcher.take_settlements(9);
    dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
    later(1).await;
    dispatcher.take(vec![row(1, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answers(&mut dispatcher, &batch, &[unknown()]);
    assert!(
        verdict(&mut dispatcher).0,
        "the sink answered for another one in between"
    );
    assert!(
        dispatcher.shut_sinks(Instant::now()).is_empty(),
        "it takes no sink down"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_under_way_when_the_sink_fell_silent_proves_nothing() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    let begun = Instant::now();
    later(1).await;
    answers(&mut dispatcher, &batch, &[unknown()]);
    verdict(&mut dispatcher);
    dispatcher.begin_answers(0, &[Outcome::Delivered, Outcome::Delivered], begun);
    later(5).await;
    dispatcher.take(vec![row(1, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answers(&mut dispatcher, &batch, &[unknown()]);
    assert!(!verdict(&mut dispatcher).0);
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_batch_that_broke_in_the_middle_goes_again_soon() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, None), row(2, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answers(&mut dispatcher, &batch, &[Outcome::Delivered, unknown()]);
    let settlements = dispatcher.take_settlements(9);
    let retried = settlements
        .settlements
        .iter()
        .flat_map(|settlement| &settlement.deliveries);
    let delays: Vec<_> = retried
        .filter_map(|delivery| match &delivery.verdict {
            Verdict::Retry { charged, delay, .. } => Some((*charged, *delay < Duration::from_secs(1))),
            _ => None,
        })
        .collect();
    assert_eq!(delays, [(false, true)]);
    assert!(dispatcher.shut_sinks(Instant::now()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_probe_is_followed_by_one_with_another_message() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(1, None)], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answers(&mut dispatcher, &batch, &[Outcome::SinkDown("no".into())]);
    verdict(&mut dispatcher);
    let mut probes = Vec::new();
    for _ in 0..12 {
        later(6).await;
        dispatcher.take(vec![row(1, None), row(2, None), row(3, None)], Instant::now());
        let probe = dispatcher.next_batch(0, Instant::now());
        probes.extend(seqs(&probe));
        answers(&mut dispatcher, &probe, &[Outcome::SinkDown("no".into())]);
        let settlements = dispatcher.take_settlements(9);
        dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
    }
    assert!(probes.windows(2).all(|pair| pair[0] != pair[1]), "{probes:?}");
    let tried: std::collections::BTreeSet<i64> = probes.iter().copied().collect();
    assert_eq!(tried.len(), 3, "{probes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_at_which_a_sink_goes_down_again_and_again_leaves_it_to_the_others() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    let mut pauses = Vec::new();
    for _ in 0..4 {
        dispatcher.take(vec![row(1, None)], Instant::now());
        let batch = dispatcher.next_batch(0, Instant::now());
        answers(&mut dispatcher, &batch, &[Outcome::SinkDown("no".into())]);
        let (charged, delay) = verdict(&mut dispatcher);
        assert!(!charged);
        pauses.push(delay);
        later(10).await;
        dispatcher.take(vec![row(2, None)], Instant::now());
        let batch = dispatcher.next_batch(0, Instant::now());
        answers(&mut dispatcher, &batch, &[Outcome::Delivered]);
        let settlements = dispatcher.take_settlements(9);
        dispatcher.settled(settlements, &SettleReport::default().into(), Instant::now());
        later(1).await;
    }
    assert_eq!(pauses[1..], [2, 4, 8].map(Duration::from_secs));
}
