//! Publishing: starts batches as soon as possible, and calls the sink while the lease is valid.

use std::sync::Arc;
use std::time::Duration;

use sendoff::{Outcome, Outgoing, Sink};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::event::Event;
use super::running::Running;
use super::trail;
use crate::guard::call;

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
                    batch.outgoing,
                    planned.settings.timeout,
                    self.registration.lease.subscribe(),
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
    batch: Vec<Arc<Outgoing>>,
    limit: Duration,
    lease: watch::Receiver<Instant>,
) -> Published {
    tokio::select! {
        biased;
        // A process that was suspended must not continue a call after its lease has expired.
        () = lease_over(lease), if !planted!(LeaseUnchecked) => Published::LeaseOver,
        outcomes = call(sink.as_ref(), &batch, limit) => Published::Answered(outcomes),
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
