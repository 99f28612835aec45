//! What applies to a topic.

use crate::RetryPolicy;

/// What happens with the followers of a key when its head fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeadPolicy {
    /// They wait until it is delivered, or until an operator acts on its dead letter: order is never given up.
    #[default]
    Block,
    /// They wait while it is retried, and go on once it is dead.
    Skip,
    /// They go on at once; it is retried beside them.
    Park,
}

/// Retries and order for the topics that a pattern matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TopicPolicy {
    /// When and how often a failed message is tried again.
    pub retry: RetryPolicy,
    /// What happens with the followers of its key.
    pub head: HeadPolicy,
}
