//! Telling those who follow messages of every attempt. They may do anything but stop the relay.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sendoff::context::{Follow, Followed};
use sendoff::{Delivery, Outcome};

/// Those who follow.
#[derive(Clone, Default)]
pub(crate) struct Followers(Arc<[Arc<dyn Follow>]>);

impl Followers {
    pub(crate) fn add(&mut self, follower: Arc<dyn Follow>) {
        self.0 = self.0.iter().cloned().chain([follower]).collect();
    }

    /// A batch is about to be handed to the sink of a leg.
    pub(crate) fn publishing(&self, batch: &[Arc<Delivery>], leg: &str) -> Attempts {
        let mut attempts = Vec::new();
        for follower in &*self.0 {
            for (at, delivery) in batch.iter().enumerate() {
                let attempt = contained(|| follower.publishing(delivery, leg)).flatten();
                attempts.extend(attempt.map(|attempt| (at, attempt)));
            }
        }
        Attempts(attempts)
    }
}

/// The attempts of a batch that are followed, each with its place in it.
pub(crate) struct Attempts(Vec<(usize, Box<dyn Followed>)>);

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
        tracing::error!(
            event = "follow_panicked",
            "one who follows messages panicked; the relay goes on"
        );
    }
    done.ok()
}
