//! Tracing of every attempt to deliver a message.

use crate::{Outcome, Outgoing};

/// Traces messages to their sinks. A relay calls it before each attempt, on its hot path: return quickly.
pub trait DeliveryTracer: Send + Sync + 'static {
    /// A message is about to be handed to the sink of this delivery. [`Outgoing::attempts`] counts the
    /// failed attempts before it. `None`: this attempt is not traced.
    fn publishing(&self, outgoing: &Outgoing, sink: &str) -> Option<Box<dyn TracedAttempt>>;
}

/// An attempt in progress. If the relay abandons the attempt, it is dropped without an answer: its outcome is unknown.
pub trait TracedAttempt: Send {
    /// The sink answered.
    fn answered(self: Box<Self>, outcome: &Outcome);
}
