//! Calling a sink, whatever it does: answer, hang, panic, or answer nonsense.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use sendoff::{Delivery, Outcome, Sink};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::follow::Followers;

/// How publishing ended.
pub(crate) enum Published {
    /// One outcome a message.
    Answered(Vec<Outcome>),
    /// The relay's lease ran out while it was under way: the call was dropped, and nothing is known.
    LeaseOver,
}

/// Hands a batch to the sink of a leg, as long as the lease holds.
pub(crate) async fn publish(
    sink: Arc<dyn Sink>,
    leg: Arc<str>,
    batch: Vec<Arc<Delivery>>,
    limit: Duration,
    lease: watch::Receiver<Instant>,
    followers: Followers,
) -> Published {
    let attempts = followers.publishing(&batch, &leg);
    tokio::select! {
        biased;
        // A process that was stopped for a while must not go on with a call for which its lease is over.
        () = lease_over(lease), if !planted!(LeaseUnchecked) => Published::LeaseOver,
        outcomes = call(sink.as_ref(), &batch, limit) => {
            attempts.answered(&outcomes);
            Published::Answered(outcomes)
        }
    }
}

/// Returns once the lease's deadline has passed without having been moved on.
pub(crate) async fn lease_over(mut lease: watch::Receiver<Instant>) {
    loop {
        let deadline = *lease.borrow_and_update();
        sleep_until(deadline).await;
        if *lease.borrow() <= Instant::now() {
            return;
        }
    }
}

async fn call(sink: &dyn Sink, batch: &[Arc<Delivery>], limit: Duration) -> Vec<Outcome> {
    match timeout(limit, AssertUnwindSafe(sink.publish(batch)).catch_unwind()).await {
        Ok(Ok(outcomes)) if outcomes.len() == batch.len() => outcomes,
        Ok(Ok(outcomes)) => {
            let text = format!("the sink answered for {} of {} messages", outcomes.len(), batch.len());
            batch.iter().map(|_| Outcome::Temporary(text.clone().into())).collect()
        }
        // One message may be what makes it panic: alone, it takes no other with it.
        Ok(Err(_)) if batch.len() > 1 => {
            let mut outcomes = Vec::with_capacity(batch.len());
            for delivery in batch {
                outcomes.extend(Box::pin(call(sink, std::slice::from_ref(delivery), limit)).await);
            }
            outcomes
        }
        // It may have arrived before that. But it is the message that fails, and no outage: the attempt counts.
        Ok(Err(_)) => vec![Outcome::Temporary("the sink panicked".into())],
        Err(_) => {
            let text = format!("the sink gave no answer within {limit:?}");
            batch.iter().map(|_| Outcome::Unknown(text.clone().into())).collect()
        }
    }
}
