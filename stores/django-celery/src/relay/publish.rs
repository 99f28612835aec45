//! Bringing one claim to the broker.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use sendoff::{Delivery, Outcome, Sink};
use tokio::time::timeout;

use super::Settings;
use super::decide::Decision;
use super::suspects::Suspects;
use crate::{Claim, Row, Settlement};

/// What came of a claim.
pub(super) struct Published {
    pub(super) settlement: Settlement,
    /// Why the broker seems to be down, if it does.
    pub(super) outage: Option<String>,
}

/// Sends what can be sent, and decides about every row.
pub(super) async fn publish(claim: &Claim, sink: &dyn Sink, settings: &Settings, suspects: &Suspects) -> Published {
    let mut rng = fastrand::Rng::new();
    let mut decision = Decision::new(settings);
    let (mut together, mut alone) = (Vec::with_capacity(claim.rows.len()), Vec::new());
    for row in &claim.rows {
        if row.retries >= settings.max_retries {
            decision.exceeded(row);
            continue;
        }
        match row.delivery() {
            Ok(delivery) if suspects.has(row.id) => alone.push((row, delivery)),
            Ok(delivery) => together.push((row, delivery)),
            Err(error) => decision.failed(row, &error.to_string().into(), &mut rng),
        }
    }
    let limit = sink.limits().timeout.unwrap_or_default().max(settings.send_timeout);
    let most = sink.limits().batch.unwrap_or(usize::MAX).max(1);
    for some in together.chunks(most) {
        let batch: Vec<Arc<Delivery>> = some.iter().map(|(_, delivery)| Arc::clone(delivery)).collect();
        for ((row, _), outcome) in some.iter().zip(call(sink, &batch, limit).await) {
            match &outcome {
                Outcome::Unknown(_) => suspects.add(row.id),
                _ => suspects.clear(row.id),
            }
            decision.answered(row, outcome, &mut rng);
        }
    }
    // What was on its way when the broker hung up may be what made it hang up: by itself, it takes no other with it.
    for (row, delivery) in alone {
        publish_alone(row, delivery, sink, limit, &mut decision, suspects, &mut rng).await;
    }
    Published {
        settlement: decision.settlement,
        outage: decision.outage,
    }
}

async fn publish_alone(
    row: &Row,
    delivery: Arc<Delivery>,
    sink: &dyn Sink,
    limit: Duration,
    decision: &mut Decision<'_>,
    suspects: &Suspects,
    rng: &mut fastrand::Rng,
) {
    let outcome = call(sink, std::slice::from_ref(&delivery), limit).await.pop();
    suspects.clear(row.id);
    match outcome {
        // Twice, and the second time nothing else was on its way: charged, so that it comes to an end.
        Some(Outcome::Unknown(reason)) => decision.failed(row, &reason, rng),
        Some(outcome) => decision.answered(row, outcome, rng),
        None => decision.failed(row, &"the sink gave no answer".into(), rng),
    }
}

/// One outcome a message, whatever the sink does.
async fn call(sink: &dyn Sink, batch: &[Arc<Delivery>], limit: Duration) -> Vec<Outcome> {
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
