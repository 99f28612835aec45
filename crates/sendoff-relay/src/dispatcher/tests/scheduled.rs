//! Scheduled messages that are due.

use super::*;

/// A message that was scheduled, and has not been routed yet.
fn scheduled(seq: i64, key: &str) -> Row {
    let row_ref = RowRef {
        table: Table::Waiting,
        lane: 1,
        seq,
        id: sendoff::Uuid::from_u128(seq.unsigned_abs().into()).into(),
        sink: None,
        locator: 0,
    };
    row_at(row_ref, Some(key))
}

#[tokio::test]
async fn a_scheduled_message_that_is_due_goes_behind_those_that_were_read_before() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(
        vec![row(5, Some("k")), scheduled(1, "k"), row(6, Some("k"))],
        Instant::now(),
    );
    for seq in [5, 1, 6] {
        let batch = dispatcher.next_batch(0, Instant::now());
        assert_eq!(seqs(&batch), [seq]);
        answer(&mut dispatcher, batch, &Outcome::Delivered);
    }
}

#[tokio::test]
async fn a_scheduled_message_that_is_due_waits_behind_one_that_failed() {
    let mut dispatcher = dispatcher_with(OnFailure::Block, &["a"], 5);
    dispatcher.take(vec![row(5, Some("k"))], Instant::now());
    let batch = dispatcher.next_batch(0, Instant::now());
    answer(&mut dispatcher, batch, &Outcome::Temporary("no".into()));
    let failed = dispatcher.take_settlements(9);
    assert_eq!(verdicts(&failed.settlements), [(5, "retry")]);
    dispatcher.settled(failed, &SettleReport::default().into(), Instant::now());
    dispatcher.take(vec![scheduled(1, "k")], Instant::now());
    assert!(dispatcher.next_batch(0, Instant::now()).is_none());
    assert_eq!(verdicts(&dispatcher.take_settlements(9).settlements), [(1, "blocked")]);
}
