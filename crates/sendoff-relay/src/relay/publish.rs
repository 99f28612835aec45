//! Publishing: starts batches as soon as possible, calls a sink, and handles everything it may do: answer, hang, panic, or
//! answer incorrectly.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use sendoff::{Outcome, Outgoing, Sink};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::event::Event;
use super::running::Running;
use super::trail;
use crate::tracer::DeliveryTracers;

impl Running {
    pub(super) fn start_publishing(&mut self, now: Instant) {
        if now >= *self.registration.lease.borrow() && !planted!(LeaseUnchecked) {
            return;
        }
        for sink in 0..self.dispatcher.sink_count() {
            while self.under_way.with_sink[sink] < self.dispatcher.sink(sink).settings.concurrency.max(1) {
                let Some(batch) = self.dispatcher.next_batch(sink, now) else {
                    break;
                };
                self.under_way.with_sink[sink] += 1;
                let planned = self.dispatcher.sink(sink);
                trail::sent(&planned.name, &batch.outgoing);
                let work = publish(
                    planned.sink.clone(),
                    planned.name.clone(),
                    batch.outgoing,
                    planned.settings.timeout,
                    self.registration.lease.subscribe(),
                    self.tracers.clone(),
                );
                let tickets = batch.tickets;
                self.under_way.tasks.spawn(async move {
                    Event::Published {
                        sink,
                        tickets,
                        begun: now,
                        published: work.await,
                    }
                });
            }
        }
    }
}

/// How publishing ended.
pub(crate) enum Published {
    /// One outcome per message.
    Answered(Vec<Outcome>),
    /// The relay's lease expired during the call: the call was dropped, and the outcomes are unknown.
    LeaseOver,
}

/// Hands a batch to its sink, while the lease is valid.
pub(crate) async fn publish(
    sink: Arc<dyn Sink>,
    sink_name: Arc<str>,
    batch: Vec<Arc<Outgoing>>,
    limit: Duration,
    lease: watch::Receiver<Instant>,
    tracers: DeliveryTracers,
) -> Published {
    let attempts = tracers.publishing(&batch, &sink_name);
    tokio::select! {
        biased;
        // A process that was suspended must not continue a call after its lease has expired.
        () = lease_over(lease), if !planted!(LeaseUnchecked) => Published::LeaseOver,
        outcomes = call(sink.as_ref(), &batch, limit) => {
            attempts.answered(&outcomes);
            Published::Answered(outcomes)
        }
    }
}

/// Returns when the lease's deadline has passed without being extended.
pub(crate) async fn lease_over(mut lease: watch::Receiver<Instant>) {
    loop {
        let deadline = *lease.borrow_and_update();
        sleep_until(deadline).await;
        if *lease.borrow() <= Instant::now() {
            return;
        }
    }
}

async fn call(sink: &dyn Sink, batch: &[Arc<Outgoing>], limit: Duration) -> Vec<Outcome> {
    match timeout(limit, AssertUnwindSafe(sink.publish(batch)).catch_unwind()).await {
        Ok(Ok(outcomes)) if outcomes.len() == batch.len() => outcomes,
        Ok(Ok(outcomes)) => {
            let text = format!("the sink answered for {} of {} messages", outcomes.len(), batch.len());
            batch.iter().map(|_| Outcome::Temporary(text.clone().into())).collect()
        }
        // One message may cause the panic: when it is sent alone, no other message is affected.
        Ok(Err(_)) if batch.len() > 1 => {
            let mut outcomes = Vec::with_capacity(batch.len());
            for outgoing in batch {
                outcomes.extend(Box::pin(call(sink, std::slice::from_ref(outgoing), limit)).await);
            }
            outcomes
        }
        // It may have arrived before. But this is a failure of the message, not an outage: the attempt is charged.
        Ok(Err(_)) => vec![Outcome::Temporary("the sink panicked".into())],
        Err(_) => {
            let text = format!("the sink gave no answer within {limit:?}");
            batch.iter().map(|_| Outcome::Unknown(text.clone().into())).collect()
        }
    }
}
