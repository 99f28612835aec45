//! Retries and order of topics.

use crate::RetryPolicy;

/// What happens to later messages with a key when the first one fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Later messages wait until the failed one is delivered, or until an operator acts on its dead letter: the order
    /// is always kept.
    #[default]
    Block,
    /// Later messages wait while the failed one is retried. They are delivered when it is dead.
    Skip,
    /// Later messages are delivered immediately; the failed one is retried independently.
    Park,
}

/// Retries and order for the topics that a pattern matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TopicPolicy {
    /// When and how often a failed message is tried again.
    pub retry: RetryPolicy,
    /// What happens to later messages with the same key when a message fails.
    pub on_failure: OnFailure,
}
