//! The way of every single message, for those who look for what went wrong: at the level `trace`, and at no cost below.
//!
//! Messages are named by their id and their place; what is in them, keys included, stays out of the log.

use std::sync::Arc;

use sendoff::store::{Place, Row, Settlement, Verdict};
use sendoff::{Delivery, Outcome};
use tracing::Level;

use crate::desk::{Desk, Ticket};

/// Rows came in.
pub(super) fn read(rows: &[Row]) {
    if tracing::enabled!(Level::TRACE) {
        rows.iter().for_each(|row| log("read", row.place(), "", ""));
    }
}

/// Messages are on their way to a sink.
pub(super) fn sent(sink: &str, deliveries: &[Arc<Delivery>]) {
    if tracing::enabled!(Level::TRACE) {
        let places = deliveries.iter().map(|delivery| &delivery.place);
        places.for_each(|place| log("sent", place, sink, ""));
    }
}

/// The sink said what became of one of them.
pub(super) fn answered(desk: &Desk, sink: usize, ticket: Ticket, outcome: &Outcome) {
    if tracing::enabled!(Level::TRACE)
        && let Some(place) = desk.place_of(ticket)
    {
        log("answered", place, &desk.sink(sink).name, outcome_name(outcome));
    }
}

/// It was not sent, because the lease was over.
pub(super) fn not_sent(desk: &Desk, sink: usize, ticket: Ticket) {
    if tracing::enabled!(Level::TRACE)
        && let Some(place) = desk.place_of(ticket)
    {
        log("not_sent", place, &desk.sink(sink).name, "");
    }
}

/// What was decided about them is about to be written.
pub(super) fn settling(settlements: &[Settlement]) {
    if !tracing::enabled!(Level::TRACE) {
        return;
    }
    for settlement in settlements {
        if settlement.legs.is_empty() {
            log("settling", &settlement.place, "", "delivered");
        }
        for leg in &settlement.legs {
            log("settling", &settlement.place, &leg.leg, verdict_name(&leg.verdict));
        }
    }
}

/// It is written.
pub(super) fn settled(settlements: &[Settlement], refused: &[usize]) {
    if tracing::enabled!(Level::TRACE) {
        for (at, settlement) in settlements.iter().enumerate() {
            let what = if refused.binary_search(&at).is_ok() {
                "refused"
            } else {
                "written"
            };
            log("settled", &settlement.place, "", what);
        }
    }
}

fn log(step: &str, place: &Place, sink: &str, what: &str) {
    let (lane, seq, room) = (place.lane, place.seq, place.room);
    tracing::trace!(event = "row_step", step, id = %place.id, lane, seq, ?room, sink, what, "a row goes its way");
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
        Verdict::Hold => "hold",
        Verdict::Dead { .. } => "dead",
    }
}
