//! Tracing of every attempt to deliver a message.

use crate::{Outcome, Outgoing};

/// Traces deliveries. A relay calls it before each attempt, so it must return quickly.
pub trait DeliveryTracer: Send + Sync + 'static {
    /// Called before a message is handed to `sink`. [`Outgoing::attempts`] counts the failed attempts so far. Return
    /// `None` if this attempt is not traced.
    fn publishing(&self, outgoing: &Outgoing, sink: &str) -> Option<Box<dyn TracedAttempt>>;
}

/// One traced attempt. If the relay abandons the attempt, this value is dropped without a call of
/// [`answered`](TracedAttempt::answered): the outcome is unknown.
pub trait TracedAttempt: Send {
    /// Called with the outcome of the attempt.
    fn answered(self: Box<Self>, outcome: &Outcome);
}
