//! Hooks that remember what they were told.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sendoff::store::DeadReason;
use sendoff::{Delivery, Uuid};
use sendoff_relay::Hooks;

/// One call of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// A sink confirmed a message.
    Sent {
        /// The message.
        id: Uuid,
        /// The sink.
        leg: String,
    },
    /// An attempt failed.
    Failed {
        /// The message.
        id: Uuid,
        /// The sink.
        leg: String,
        /// Which attempt it was, from 1.
        attempts: u32,
        /// Why.
        error: String,
        /// When the next one is.
        delay: Duration,
    },
    /// A message went to the dead letters.
    DeadLettered {
        /// The message.
        id: Uuid,
        /// The sink.
        leg: String,
        /// Why, in one word.
        reason: DeadReason,
        /// Why.
        error: String,
    },
}

impl Call {
    /// The message that it is about.
    pub fn id(&self) -> Uuid {
        match self {
            Self::Sent { id, .. } | Self::Failed { id, .. } | Self::DeadLettered { id, .. } => *id,
        }
    }
}

/// Remembers every call, in order.
#[derive(Debug, Default)]
pub struct RecordingHooks(Mutex<Vec<Call>>);

impl RecordingHooks {
    /// Hooks that have not been called yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, call: Call) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

impl Hooks for RecordingHooks {
    fn sent(&self, delivery: &Delivery, leg: &str) {
        self.note(Call::Sent {
            id: delivery.id,
            leg: leg.to_owned(),
        });
    }

    fn failed(&self, delivery: &Delivery, leg: &str, attempts: u32, error: &str, delay: Duration) {
        self.note(Call::Failed {
            id: delivery.id,
            leg: leg.to_owned(),
            attempts,
            error: error.to_owned(),
            delay,
        });
    }

    fn dead_lettered(&self, delivery: &Delivery, leg: &str, reason: DeadReason, error: &str) {
        self.note(Call::DeadLettered {
            id: delivery.id,
            leg: leg.to_owned(),
            reason,
            error: error.to_owned(),
        });
    }
}
