//! Traces every step of every row, for debugging: at the level `trace`, and at no cost below it.
//!
//! Lines name a message by its id and row. Its contents, including the key, are not logged.

use std::sync::Arc;

use sendoff::store::{Row, RowRef, Settlement, Verdict};
use sendoff::{Outcome, Outgoing};
use tracing::Level;

use crate::dispatcher::{Dispatcher, Ticket};

/// Rows were read.
pub(super) fn read(rows: &[Row]) {
    if tracing::enabled!(Level::TRACE) {
        rows.iter().for_each(|row| log("read", row.row_ref(), "", ""));
    }
}

/// Messages are handed to a sink.
pub(super) fn sent(sink: &str, outgoing: &[Arc<Outgoing>]) {
    if tracing::enabled!(Level::TRACE) {
        let row_refs = outgoing.iter().map(|outgoing| &outgoing.row_ref);
        row_refs.for_each(|row_ref| log("sent", row_ref, sink, ""));
    }
}

/// The sink returned the outcome of a message.
pub(super) fn answered(dispatcher: &Dispatcher, sink: usize, ticket: Ticket, outcome: &Outcome) {
    if tracing::enabled!(Level::TRACE)
        && let Some(row_ref) = dispatcher.row_ref_of(ticket)
    {
        log("answered", row_ref, &dispatcher.sink(sink).name, outcome_name(outcome));
    }
}

/// It was not sent, because the lease had expired.
pub(super) fn not_sent(dispatcher: &Dispatcher, sink: usize, ticket: Ticket) {
    if tracing::enabled!(Level::TRACE)
        && let Some(row_ref) = dispatcher.row_ref_of(ticket)
    {
        log("not_sent", row_ref, &dispatcher.sink(sink).name, "");
    }
}

/// Results are about to be written.
pub(super) fn settling(settlements: &[Settlement]) {
    if !tracing::enabled!(Level::TRACE) {
        return;
    }
    for settlement in settlements {
        if settlement.deliveries.is_empty() {
            log("settling", &settlement.row_ref, "", "delivered");
        }
        for sink in &settlement.deliveries {
            log("settling", &settlement.row_ref, &sink.sink, verdict_name(&sink.verdict));
        }
    }
}

/// A result is written.
pub(super) fn settled(settlements: &[Settlement], refused: &[usize]) {
    if tracing::enabled!(Level::TRACE) {
        for (at, settlement) in settlements.iter().enumerate() {
            let what = if refused.binary_search(&at).is_ok() {
                "refused"
            } else {
                "written"
            };
            log("settled", &settlement.row_ref, "", what);
        }
    }
}

fn log(step: &str, row_ref: &RowRef, sink: &str, what: &str) {
    let (lane, seq, table) = (row_ref.lane, row_ref.seq, row_ref.table);
    tracing::trace!(event = "row_step", step, id = %row_ref.id, lane, seq, ?table, sink, what, "step of a row");
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Temporary(_) => "temporary",
        Outcome::Permanent(_) => "permanent",
        Outcome::Unknown(_) => "unknown",
        Outcome::SinkDown(_) => "sink_down",
        Outcome::NotYet(_) => "not_yet",
    }
}

fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Delivered => "delivered",
        Verdict::Retry { .. } => "retry",
        Verdict::Paused { .. } => "paused",
        Verdict::Blocked => "blocked",
        Verdict::Dead { .. } => "dead",
    }
}
