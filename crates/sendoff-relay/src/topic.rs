//! Policies of topics.

use crate::RetryPolicy;

/// What followers of a key do when its head fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// They wait until it is delivered, or until an operator acts on its dead letter: the order is always kept.
    #[default]
    Block,
    /// They wait while it is retried, and continue when it is dead.
    Skip,
    /// They continue immediately; it is retried independently.
    Park,
}

/// Retries and order for the topics that a pattern matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TopicPolicy {
    /// When and how often a failed message is tried again.
    pub retry: RetryPolicy,
    /// What followers of its key do when it fails.
    pub on_failure: OnFailure,
}
