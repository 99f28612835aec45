//! The dispatcher's decisions, without a store or a sink. Its helpers are here.

mod elsewhere;
mod lanes;
mod order;
mod pause;
mod quarantine;
mod recheck;
mod scheduled;
mod search;
mod sinks;
mod unanswered;

use std::time::Duration;

use sendoff::store::{RetryState, SettleReport, Table};
use sendoff::{Outcome, Sink};

use super::*;
use crate::plan::PlannedSink;
use crate::{OnFailure, RetryPolicy, SinkSettings, TopicPolicy};

struct Nowhere;
#[async_trait::async_trait]
impl Sink for Nowhere {
    async fn publish(&self, _: &[Arc<Outgoing>]) -> Vec<Outcome> {
        Vec::new()
    }
}

fn dispatcher_with(head: OnFailure, sinks: &[&str], attempts: u32) -> Dispatcher {
    let planned = |name: &&str| PlannedSink {
        name: Arc::from(*name),
        sink: Arc::new(Nowhere),
        settings: SinkSettings::default(),
    };
    let policy = TopicPolicy {
        on_failure: head,
        retry: RetryPolicy {
            attempts,
            ..RetryPolicy::default()
        },
    };
    let all = sinks.iter().map(ToString::to_string).collect();
    let last = sinks.last().map(ToString::to_string).into_iter().collect();
    let routes = vec![("t".parse().unwrap(), all), ("last".parse().unwrap(), last)];
    let plan = Plan::new(sinks.iter().map(planned).collect(), routes, Vec::new(), policy).unwrap();
    let mut dispatcher = Dispatcher::new(
        plan,
        HookList::default(),
        fastrand::Rng::with_seed(1),
        &Settings {
            max_in_flight: 16,
            ..Settings::default()
        },
    );
    dispatcher.gain(&[grant_after_crashes(0)], Vec::new(), Instant::now());
    dispatcher
}

fn grant_after_crashes(crashes: u32) -> LaneGrant {
    LaneGrant {
        lane: 1,
        epoch: 1,
        crashes,
        quarantined: None,
    }
}

fn row(seq: i64, key: Option<&str>) -> Row {
    row_of(1, seq, key)
}

fn row_of(lane: Lane, seq: i64, key: Option<&str>) -> Row {
    row_at(
        RowRef {
            table: Table::Ready,
            lane,
            seq,
            id: sendoff::Uuid::from_u128(seq.unsigned_abs().into()).into(),
            sink: None,
            locator: 0,
        },
        key,
    )
}

fn waiting(seq: i64, key: &str) -> Row {
    row_at(
        RowRef {
            table: Table::Waiting,
            lane: 1,
            seq,
            id: sendoff::Uuid::from_u128(seq.unsigned_abs().into()).into(),
            sink: Some(Arc::from("a")),
            locator: 0,
        },
        Some(key),
    )
}

fn row_at(row_ref: RowRef, key: Option<&str>) -> Row {
    Row::Message(Arc::new(Outgoing {
        id: sendoff::Uuid::from_u128(row_ref.seq.unsigned_abs().into()),
        topic: "t".to_owned(),
        key: key.map(str::to_owned),
        ..Outgoing::blank(row_ref)
    }))
}

fn seqs(batch: &Option<Batch>) -> Vec<i64> {
    batch
        .as_ref()
        .map_or_else(Vec::new, |batch| batch.outgoing.iter().map(|d| d.row_ref.seq).collect())
}

fn answer(dispatcher: &mut Dispatcher, batch: Option<Batch>, outcome: &Outcome) {
    for ticket in batch.unwrap().tickets {
        let sink = dispatcher
            .entries
            .get(ticket.entry)
            .and_then(|entry| entry.deliveries[ticket.delivery].sink);
        dispatcher.outcome(sink.unwrap_or(0), ticket, outcome.clone(), Instant::now());
    }
}

fn verdicts(settlements: &[Settlement]) -> Vec<(i64, &'static str)> {
    let word = |settlement: &Settlement| match settlement.deliveries.first().map(|delivery| &delivery.verdict) {
        None | Some(Verdict::Delivered) => "delivered",
        Some(Verdict::Retry {
            state: RetryState::Retry,
            ..
        }) => "retry",
        Some(Verdict::Retry {
            state: RetryState::Deferred,
            ..
        }) => "down",
        Some(Verdict::Retry {
            state: RetryState::Parked,
            ..
        }) => "parked",
        Some(Verdict::Paused { .. }) => "paused",
        Some(Verdict::Blocked) => "blocked",
        Some(Verdict::Dead { blocks: true, .. }) => "dead, blocks",
        Some(Verdict::Dead { blocks: false, .. }) => "dead",
    };
    settlements
        .iter()
        .map(|settlement| (settlement.row_ref.seq, word(settlement)))
        .collect()
}

fn freed(key: &str) -> SettleReport {
    SettleReport {
        freed: vec![blocked(key)],
        ..SettleReport::default()
    }
}

fn temporary() -> Outcome {
    Outcome::Temporary("no".into())
}

fn blocked(key: &str) -> BlockedKey {
    BlockedKey {
        lane: 1,
        key: key.into(),
        sink: "a".into(),
    }
}

fn forgotten(dispatcher: &mut Dispatcher) -> Vec<i64> {
    dispatcher.take_forgotten().iter().map(|row_ref| row_ref.seq).collect()
}
