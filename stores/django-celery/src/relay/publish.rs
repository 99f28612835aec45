//! Sends the rows of one claim to the broker.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use sendoff::{Outcome, Outgoing, Result, Sink};
use tokio::time::timeout;

use super::Settings;
use super::decide::Decision;
use super::quarantine::QuarantinedRows;
use crate::{Claim, Row, Settlement};

/// What came of a claim.
pub(super) struct Published {
    pub(super) settlement: Settlement,
    /// Why the broker seems to be down, if it does.
    pub(super) outage: Option<String>,
}

/// Sends what can be sent, and decides about every row.
pub(super) async fn publish(
    claim: &Claim,
    outgoing: Vec<Result<Arc<Outgoing>>>,
    sink: &dyn Sink,
    settings: &Settings,
    quarantined: &QuarantinedRows,
) -> Published {
    let mut rng = fastrand::Rng::new();
    let mut decision = Decision::new(settings);
    // What was on its way when the broker hung up may be what made it hang up. It goes apart from the rest, and alone if
    // that happens again: then it takes no other with it.
    let (mut together, mut apart, mut alone) = (Vec::with_capacity(claim.rows.len()), Vec::new(), Vec::new());
    for (row, outgoing) in claim.rows.iter().zip(outgoing) {
        if row.retries >= settings.max_retries {
            decision.exceeded(row);
            continue;
        }
        match outgoing {
            Ok(outgoing) => match quarantined.times(row.id) {
                0 => together.push((row, outgoing)),
                1 => apart.push((row, outgoing)),
                _ => alone.push((row, outgoing)),
            },
            Err(error) => decision.failed(row, &error.to_string().into(), &mut rng),
        }
    }
    let limit = sink.limits().timeout.unwrap_or_default().max(settings.send_timeout);
    let most = sink.limits().batch.unwrap_or(usize::MAX).max(1);
    for some in together.chunks(most).chain(apart.chunks(most)) {
        if let Some(reason) = decision.outage.clone() {
            put_off(some, &reason, &mut decision, &mut rng);
            continue;
        }
        let batch: Vec<Arc<Outgoing>> = some.iter().map(|(_, outgoing)| Arc::clone(outgoing)).collect();
        for ((row, _), outcome) in some.iter().zip(call(sink, &batch, limit).await) {
            match &outcome {
                Outcome::Unknown(_) => quarantined.add(row.id),
                // It was not tried.
                Outcome::SinkDown(_) | Outcome::NotYet(_) => {}
                Outcome::Delivered | Outcome::Temporary(_) | Outcome::Permanent(_) => quarantined.clear(row.id),
            }
            decision.answered(row, outcome, &mut rng);
        }
    }
    for one in &alone {
        match decision.outage.clone() {
            Some(reason) => put_off(std::slice::from_ref(one), &reason, &mut decision, &mut rng),
            None => publish_alone(one, sink, limit, &mut decision, quarantined, &mut rng).await,
        }
    }
    Published {
        settlement: decision.settlement,
        outage: decision.outage,
    }
}

type OnItsWay<'a> = (&'a Row, Arc<Outgoing>);

/// A broker that is down need not be asked again: each time may take as long as `send_timeout`.
fn put_off(rows: &[OnItsWay<'_>], reason: &str, decision: &mut Decision<'_>, rng: &mut fastrand::Rng) {
    for (row, _) in rows {
        decision.answered(row, Outcome::SinkDown(reason.into()), rng);
    }
}

async fn publish_alone(
    (row, outgoing): &OnItsWay<'_>,
    sink: &dyn Sink,
    limit: Duration,
    decision: &mut Decision<'_>,
    quarantined: &QuarantinedRows,
    rng: &mut fastrand::Rng,
) {
    match call(sink, std::slice::from_ref(outgoing), limit).await.pop() {
        // Thrice, and the last time nothing else was on its way: charged, so that it comes to an end.
        Some(Outcome::Unknown(reason)) => {
            quarantined.clear(row.id);
            decision.failed(row, &reason, rng);
        }
        Some(outcome @ (Outcome::SinkDown(_) | Outcome::NotYet(_))) => decision.answered(row, outcome, rng),
        Some(outcome) => {
            quarantined.clear(row.id);
            decision.answered(row, outcome, rng);
        }
        None => decision.failed(row, &"the sink gave no answer".into(), rng),
    }
}

/// One outcome a message, whatever the sink does.
async fn call(sink: &dyn Sink, batch: &[Arc<Outgoing>], limit: Duration) -> Vec<Outcome> {
    if batch.is_empty() {
        return Vec::new();
    }
    let all = |outcome: Outcome| vec![outcome; batch.len()];
    let publishing = std::panic::AssertUnwindSafe(sink.publish(batch)).catch_unwind();
    match timeout(limit, publishing).await {
        Ok(Ok(outcomes)) if outcomes.len() == batch.len() => outcomes,
        Ok(Ok(outcomes)) => {
            let text = format!("the sink answered for {} of {} tasks", outcomes.len(), batch.len());
            all(Outcome::Unknown(text.into()))
        }
        // Suspected from now on, if there were others.
        Ok(Err(_)) if batch.len() > 1 => all(Outcome::Unknown("the sink panicked".into())),
        Ok(Err(_)) => all(Outcome::Temporary("the sink panicked".into())),
        Err(_) => all(Outcome::Unknown(
            format!("the broker gave no answer within {limit:?}").into(),
        )),
    }
}
