//! Settlements that are written twice, because the answer to the first try was lost.

use std::time::Duration;

use sendoff::store::{Command, DeadReason, Filter, RetryOptions, Settlement, Status, Verdict};
use sendoff::{Outgoing, Uuid};
use serde_json::Value;

use super::manual_relay::{ManualRelay, dead, retry, sink};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered};

cases![
    a_settlement_that_is_written_twice_charges_once,
    a_row_without_a_route_that_is_settled_twice_is_charged_once,
    a_death_that_is_written_twice_charges_once,
    a_row_whose_attempts_were_reset_meanwhile_still_waits,
];

const LATER: Duration = Duration::from_secs(3600);

/// A message in flight that waits for the delivery `sink` and has one attempt.
async fn tried(scene: &Scene) -> sendoff::Result<(ManualRelay, Outgoing, Uuid)> {
    let emitted = scene.emit([numbered("k", 0)]).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    relay.settle_as(&retry(Duration::ZERO), &read).await?;
    let again = relay.read_messages(1).await.remove(0);
    assert_eq!(again.attempts, 1);
    Ok((relay, again, emitted[0].id()))
}

async fn tries_told(scene: &Scene, id: Uuid) -> sendoff::Result<usize> {
    let row = scene.find_one(id).await?;
    let json: Value = serde_json::from_str(row.history.as_deref().unwrap_or("[]")).expect("JSON");
    Ok(json.as_array().expect("an array").len())
}

async fn a_settlement_that_is_written_twice_charges_once(scene: Scene) -> CaseResult {
    let (mut relay, read, id) = tried(&scene).await?;
    let settlement = relay.settlement(&read, vec![sink("sink", retry(Duration::ZERO))]);
    for _ in 0..2 {
        let report = relay.settle(std::slice::from_ref(&settlement)).await?;
        assert!(report.lost.is_empty());
        let row = scene.find_one(id).await?;
        assert_eq!((row.status, row.attempts), (Status::Retry, 2));
        assert_eq!(tries_told(&scene, id).await?, 2);
    }
    // It is read again with what it has, and the next attempt counts.
    let third = relay.read_messages(1).await;
    assert_eq!(third[0].attempts, 2);
    relay.settle_as(&retry(LATER), &third).await?;
    assert_eq!(scene.find_one(id).await?.attempts, 3);
    Ok(())
}

async fn a_row_without_a_route_that_is_settled_twice_is_charged_once(scene: Scene) -> CaseResult {
    let emitted = scene.emit([numbered("k", 0).delay(Duration::from_millis(1))]).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    let settlement = relay.settlement(&read[0], vec![sink("", retry(LATER))]);
    relay.settle(std::slice::from_ref(&settlement)).await?;
    relay.settle(&[settlement]).await?;
    let row = scene.find_one(emitted[0].id()).await?;
    assert_eq!((row.sink.as_str(), row.attempts), ("", 1));
    Ok(())
}

async fn a_death_that_is_written_twice_charges_once(scene: Scene) -> CaseResult {
    let (mut relay, read, id) = tried(&scene).await?;
    let verdict = dead(DeadReason::Exhausted, true);
    let settlement = relay.settlement(&read, vec![sink("sink", verdict)]);
    for _ in 0..2 {
        relay.settle(std::slice::from_ref(&settlement)).await?;
        let row = scene.find_one(id).await?;
        assert_eq!((row.status, row.attempts), (Status::Dead, 2));
    }
    Ok(())
}

/// An operator forgets the attempts of a message while it is with its sink: it waits anyway, and what it was told before does
/// not count.
async fn a_row_whose_attempts_were_reset_meanwhile_still_waits(scene: Scene) -> CaseResult {
    for verdict in [retry(LATER), Verdict::Delivered] {
        let (mut relay, read, id) = tried(&scene).await?;
        let how = RetryOptions {
            reset: true,
            ..RetryOptions::default()
        };
        let (all, mut command) = (Filter::default(), Command::by("suite"));
        scene
            .subject
            .operate
            .retry_waiting(&all, how, None, 10, &mut command)
            .await?;
        let settlement: Settlement = relay.settlement(&read, vec![sink("sink", verdict.clone())]);
        relay.settle(&[settlement]).await?;
        if verdict == Verdict::Delivered {
            assert!(scene.subject.operate.find(id).await?.is_empty());
        } else {
            let row = scene.find_one(id).await?;
            assert_eq!((row.attempts, row.last_error.as_deref()), (0, Some("it failed")));
            relay.read_nothing().await;
            relay.deliver(&[read]).await?;
        }
        relay.store.deregister(relay.owner).await?;
    }
    Ok(())
}
