//! Calls the tracers for every attempt. A panic in them does not stop the relay.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sendoff::context::{DeliveryTracer, TracedAttempt};
use sendoff::{Outcome, Outgoing};

/// The registered tracers.
#[derive(Clone, Default)]
pub(crate) struct DeliveryTracers(Arc<[Arc<dyn DeliveryTracer>]>);

impl DeliveryTracers {
    pub(crate) fn add(&mut self, tracer: Arc<dyn DeliveryTracer>) {
        self.0 = self.0.iter().cloned().chain([tracer]).collect();
    }

    /// A batch is about to be handed to its sink.
    pub(crate) fn publishing(&self, batch: &[Arc<Outgoing>], sink: &str) -> Attempts {
        let mut attempts = Vec::new();
        for tracer in &*self.0 {
            for (at, outgoing) in batch.iter().enumerate() {
                let attempt = contained(|| tracer.publishing(outgoing, sink)).flatten();
                attempts.extend(attempt.map(|attempt| (at, attempt)));
            }
        }
        Attempts(attempts)
    }
}

/// The traced attempts of a batch, each with its index in the batch.
pub(crate) struct Attempts(Vec<(usize, Box<dyn TracedAttempt>)>);

impl Attempts {
    /// The sink has answered.
    pub(crate) fn answered(self, outcomes: &[Outcome]) {
        for (at, attempt) in self.0 {
            if let Some(outcome) = outcomes.get(at) {
                contained(|| attempt.answered(outcome));
            }
        }
    }
}

fn contained<T>(call: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(call));
    if done.is_err() {
        tracing::error!(event = "tracer_panicked", "tracer panicked; the relay continues");
    }
    done.ok()
}
