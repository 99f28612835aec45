//! The states that an operator sees.

/// The status of a message, with the names that operators see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// Never tried, and due.
    Pending,
    /// Not due before its time.
    Scheduled,
    /// Failed; it will be tried again.
    Retry,
    /// Behind a failed message of its key.
    Blocked,
    /// Not tried for now: its sink is down, paused or crowded, or a relay with its route is needed. `last_error` has the reason.
    Deferred,
    /// Confirmed by its sink.
    Delivered,
    /// Given up; an operator can retry it.
    Dead,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Scheduled,
        Self::Retry,
        Self::Blocked,
        Self::Deferred,
        Self::Delivered,
        Self::Dead,
    ];

    /// The status with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Scheduled => "scheduled",
            Self::Retry => "retry",
            Self::Blocked => "blocked",
            Self::Deferred => "deferred",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}
