//! What a verdict leaves in the tables: attempts, errors, history, times.

use std::time::{Duration, SystemTime};

use sendoff::store::{DeadReason, RetryState, Status, Stored, Table, Verdict};
use sendoff::{Outgoing, Uuid};
use serde_json::Value;

use super::manual_relay::{ManualRelay, dead};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, TICK, numbered};

cases![
    a_retry_is_due_by_the_databases_clock,
    every_state_of_waiting_is_written_from_every_table,
    every_reason_of_death_is_written_from_every_table,
    an_attempt_is_counted_when_it_is_charged,
    the_history_tells_what_was_tried,
    the_history_keeps_the_last_twenty,
    an_error_is_cut_and_freed_of_nul,
    attempts_come_back_with_the_message,
];

/// A message in flight, from each table: ready, waiting for the delivery `sink` with one attempt, and not routed yet.
async fn from_every_table(scene: &Scene, name: &str) -> sendoff::Result<(ManualRelay, Vec<Outgoing>)> {
    let mut relay = scene.relay().await?;
    scene.emit([numbered(&format!("{name} waits"), 0)]).await?;
    let read = relay.read_messages(1).await;
    relay.settle_as(&failed("first", Duration::ZERO), &read).await?;
    let later = numbered(&format!("{name} scheduled"), 0).delay(Duration::from_millis(1));
    scene.emit([numbered(&format!("{name} ready"), 0), later]).await?;
    let mut read = relay.read_messages(3).await;
    read.sort_by_key(|outgoing| (outgoing.row_ref.table, outgoing.row_ref.sink.clone()));
    let shape: Vec<_> = read
        .iter()
        .map(|d| (d.row_ref.table, d.row_ref.sink.as_deref(), d.attempts))
        .collect();
    assert_eq!(
        shape,
        [
            (Table::Ready, None, 0),
            (Table::Waiting, None, 0),
            (Table::Waiting, Some("sink"), 1)
        ]
    );
    Ok((relay, read))
}

fn failed(error: &str, delay: Duration) -> Verdict {
    charged_or_not(error, delay, true)
}

fn charged_or_not(error: &str, delay: Duration, charged: bool) -> Verdict {
    Verdict::Retry {
        state: RetryState::Retry,
        delay,
        charged,
        error: error.into(),
    }
}

fn history(stored: &Stored) -> Vec<(String, String)> {
    let json: Value = serde_json::from_str(stored.history.as_deref().unwrap_or("[]")).expect("a JSON array");
    let text = |entry: &Value, name: &str| entry[name].as_str().expect("text").to_owned();
    let entries = json.as_array().expect("an array").iter();
    entries
        .map(|entry| {
            let at: jiff::Timestamp = text(entry, "at").parse().expect("a time in RFC 3339");
            assert!(SystemTime::from(at) >= stored.created_at - TICK);
            (text(entry, "sink"), text(entry, "error"))
        })
        .collect()
}

async fn a_retry_is_due_by_the_databases_clock(scene: Scene) -> CaseResult {
    for delay in [
        // Not due before the other delays are tried, however slow the machine is.
        Duration::from_millis(600_500),
        Duration::from_secs(86_400),
        Duration::from_micros(1),
    ] {
        let (mut relay, read) = from_every_table(&scene, &format!("{delay:?}")).await?;
        let before = scene.now().await?;
        for (outgoing, row_ref) in read.iter().zip(["ready", "unrouted", "waiting"]) {
            relay
                .settle_as(&failed("no", delay), std::slice::from_ref(outgoing))
                .await?;
            let due = scene.find_one(outgoing.id).await?.due_at.expect("it is due");
            let after = scene.now().await?;
            assert!(
                due + TICK >= before + delay && due <= after + delay + TICK,
                "{row_ref} {delay:?}"
            );
        }
        relay.store.deregister(relay.owner).await?;
    }
    Ok(())
}

async fn every_state_of_waiting_is_written_from_every_table(scene: Scene) -> CaseResult {
    for (state, word, status) in [
        (RetryState::Retry, "retry", Status::Retry),
        (RetryState::Deferred, "deferred", Status::Deferred),
        (RetryState::Parked, "parked", Status::Retry),
    ] {
        let (mut relay, read) = from_every_table(&scene, word).await?;
        let verdict = Verdict::Retry {
            state,
            delay: Duration::from_secs(3600),
            charged: true,
            error: "again".into(),
        };
        relay.settle_as(&verdict, &read).await?;
        for outgoing in &read {
            let stored = scene.find_one(outgoing.id).await?;
            assert_eq!((stored.status, stored.sink.as_str()), (status, "sink"));
            assert_eq!(stored.detail.as_deref(), Some(word));
            assert_eq!(stored.attempts, i64::from(outgoing.attempts) + 1);
            assert_eq!(stored.last_error.as_deref(), Some("again"));
            assert_eq!(
                (stored.seq, stored.payload.as_slice()),
                (outgoing.row_ref.seq, &outgoing.payload[..])
            );
        }
        relay.store.deregister(relay.owner).await?;
    }
    Ok(())
}

async fn every_reason_of_death_is_written_from_every_table(scene: Scene) -> CaseResult {
    use DeadReason::{Crashed, Exhausted, Expired, Permanent, Unreadable, Unroutable};
    for reason in [Exhausted, Permanent, Expired, Unroutable, Unreadable, Crashed] {
        let (mut relay, read) = from_every_table(&scene, reason.as_str()).await?;
        let before = scene.find_one(read[0].id).await?.created_at;
        relay.settle_as(&dead(reason, false), &read).await?;
        for outgoing in &read {
            let stored = scene.find_one(outgoing.id).await?;
            assert_eq!((stored.status, stored.sink.as_str()), (Status::Dead, "sink"));
            assert_eq!(stored.detail.as_deref(), Some(reason.as_str()));
            assert_eq!(stored.attempts, i64::from(outgoing.attempts) + 1);
            assert_eq!(stored.last_error.as_deref(), Some("it is hopeless"));
            assert_eq!(
                history(&stored).last(),
                Some(&("sink".to_owned(), "it is hopeless".to_owned()))
            );
            assert!(stored.ended_at.is_some_and(|at| at + TICK >= before) && stored.due_at.is_none());
        }
        relay.store.deregister(relay.owner).await?;
    }
    Ok(())
}

async fn an_attempt_is_counted_when_it_is_charged(scene: Scene) -> CaseResult {
    let (mut relay, read) = from_every_table(&scene, "k").await?;
    relay
        .settle_as(&charged_or_not("down", Duration::ZERO, false), &read)
        .await?;
    for outgoing in &read {
        let stored = scene.find_one(outgoing.id).await?;
        assert_eq!(stored.attempts, i64::from(outgoing.attempts));
        assert_eq!(stored.last_error.as_deref(), Some("down"));
        let status = if outgoing.attempts == 0 {
            Status::Pending
        } else {
            Status::Retry
        };
        assert_eq!(stored.status, status);
    }
    let due = relay.read_messages(3).await;
    let unpaid = Verdict::Dead {
        reason: DeadReason::Expired,
        error: "too late".into(),
        charged: false,
        blocks: false,
    };
    relay.settle_as(&unpaid, &due).await?;
    for outgoing in &due {
        assert_eq!(
            scene.find_one(outgoing.id).await?.attempts,
            i64::from(outgoing.attempts)
        );
    }
    Ok(())
}

/// Settles the one message that is due with each verdict in turn.
async fn settle_in_turn(
    scene: &Scene,
    verdicts: impl IntoIterator<Item = Verdict>,
) -> sendoff::Result<(ManualRelay, Uuid)> {
    let id = scene.emit([numbered("k", 0)]).await?[0].id();
    let mut relay = scene.relay().await?;
    for verdict in verdicts {
        let due = relay.read_messages(1).await;
        relay.settle_as(&verdict, &due).await?;
    }
    Ok((relay, id))
}

async fn the_history_tells_what_was_tried(scene: Scene) -> CaseResult {
    let verdicts = [
        charged_or_not("timeout", Duration::ZERO, true),
        charged_or_not("timeout", Duration::ZERO, true),
        // The same trouble, and nothing was tried: once is enough.
        charged_or_not("timeout", Duration::ZERO, false),
        charged_or_not("down", Duration::ZERO, false),
        charged_or_not("down", Duration::ZERO, false),
        dead(DeadReason::Exhausted, false),
    ];
    let (_, id) = settle_in_turn(&scene, verdicts).await?;
    let stored = scene.find_one(id).await?;
    let errors: Vec<String> = history(&stored).into_iter().map(|(_, error)| error).collect();
    assert_eq!(errors, ["timeout", "timeout", "down", "it is hopeless"]);
    assert_eq!(stored.attempts, 3);
    Ok(())
}

async fn the_history_keeps_the_last_twenty(scene: Scene) -> CaseResult {
    let (_, id) = settle_in_turn(&scene, (0..25).map(|n| failed(&n.to_string(), Duration::ZERO))).await?;
    let stored = scene.find_one(id).await?;
    let errors: Vec<String> = history(&stored).into_iter().map(|(_, error)| error).collect();
    assert_eq!(errors, (5..25).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(stored.attempts, 25);
    Ok(())
}

async fn an_error_is_cut_and_freed_of_nul(scene: Scene) -> CaseResult {
    let long = "ž".repeat(5000);
    let quoted = "it's \"bad\"\n\\ {}";
    let (mut relay, id) = settle_in_turn(&scene, [failed(&long, Duration::ZERO)]).await?;
    assert_eq!(
        scene.find_one(id).await?.last_error.as_deref(),
        Some(&*"ž".repeat(2000))
    );
    for (error, kept) in [("with\0NUL", "withNUL"), (quoted, quoted), ("", "")] {
        let due = relay.read_messages(1).await;
        relay.settle_as(&failed(error, Duration::ZERO), &due).await?;
        let stored = scene.find_one(id).await?;
        assert_eq!(stored.last_error.as_deref(), Some(kept));
        assert_eq!(history(&stored).last().map(|(_, error)| error.as_str()), Some(kept));
    }
    let due = relay.read_messages(1).await;
    let hopeless = Verdict::Dead {
        reason: DeadReason::Permanent,
        error: format!("\0{long}"),
        charged: true,
        blocks: false,
    };
    relay.settle_as(&hopeless, &due).await?;
    let kept = scene.find_one(id).await?.last_error.unwrap_or_default();
    assert!((1999..=2000).contains(&kept.chars().count()) && !kept.contains('\0'));
    Ok(())
}

async fn attempts_come_back_with_the_message(scene: Scene) -> CaseResult {
    scene.emit([numbered("k", 0).max_attempts(9).header("a", "b")]).await?;
    let mut relay = scene.relay().await?;
    let mut read = relay.read_messages(1).await;
    for attempts in 1..4 {
        relay.settle_as(&failed("no", Duration::ZERO), &read).await?;
        let again = relay.read_messages(1).await;
        let expected = Outgoing {
            attempts,
            row_ref: again[0].row_ref.clone(),
            ..read[0].clone()
        };
        assert_eq!(again[0], expected, "nothing but the attempts and the place changes");
        assert_eq!(
            (again[0].row_ref.table, again[0].row_ref.seq),
            (Table::Waiting, read[0].row_ref.seq)
        );
        read = again;
    }
    Ok(())
}
