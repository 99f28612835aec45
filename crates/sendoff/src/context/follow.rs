//! Being told of every attempt to deliver a message.

use crate::{Delivery, Outcome};

/// Follows messages to their sinks. A relay asks it before each attempt, on its hot path: decide quickly.
pub trait Follow: Send + Sync + 'static {
    /// A message is about to be handed to the sink of this leg. [`Delivery::attempts`] tells a first attempt from a retry.
    /// `None`: this attempt is not followed.
    fn publishing(&self, delivery: &Delivery, leg: &str) -> Option<Box<dyn Followed>>;
}

/// An attempt under way. Dropped without an answer when the relay had to let go of it: nothing is known of its outcome.
pub trait Followed: Send {
    /// The sink has answered.
    fn answered(self: Box<Self>, outcome: &Outcome);
}
