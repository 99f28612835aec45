//! Hooks that remember what they were told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::DeadReason;
use sendoff::{Outgoing, Uuid};
use sendoff_relay::{DeadLetter, HookResult, Hooks};

/// One call of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// A sink confirmed a message.
    Sent {
        /// The message.
        id: Uuid,
        /// The sink.
        sink: String,
    },
    /// An attempt failed.
    Failed {
        /// The message.
        id: Uuid,
        /// The sink.
        sink: String,
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
        sink: String,
        /// Why, in one word.
        reason: DeadReason,
        /// Why.
        error: String,
    },
    /// Messages were written to the dead letters at once.
    DeadLetteredBatch {
        /// The messages.
        ids: Vec<Uuid>,
    },
}

impl Call {
    /// The message that it is about, if it is a single one.
    pub fn id(&self) -> Option<Uuid> {
        match self {
            Self::Sent { id, .. } | Self::Failed { id, .. } | Self::DeadLettered { id, .. } => Some(*id),
            Self::DeadLetteredBatch { .. } => None,
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

#[async_trait]
impl Hooks for RecordingHooks {
    async fn sent(&self, outgoing: &Arc<Outgoing>, sink: &str) -> HookResult {
        self.note(Call::Sent {
            id: outgoing.id,
            sink: sink.to_owned(),
        });
        Ok(())
    }

    async fn failed(
        &self,
        outgoing: &Arc<Outgoing>,
        sink: &str,
        attempts: u32,
        error: &str,
        delay: Duration,
    ) -> HookResult {
        self.note(Call::Failed {
            id: outgoing.id,
            sink: sink.to_owned(),
            attempts,
            error: error.to_owned(),
            delay,
        });
        Ok(())
    }

    async fn dead_lettered(&self, outgoing: &Arc<Outgoing>, sink: &str, reason: DeadReason, error: &str) -> HookResult {
        self.note(Call::DeadLettered {
            id: outgoing.id,
            sink: sink.to_owned(),
            reason,
            error: error.to_owned(),
        });
        Ok(())
    }

    async fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
        self.note(Call::DeadLetteredBatch {
            ids: dead.iter().map(|dead| dead.outgoing.id).collect(),
        });
        Ok(())
    }
}
