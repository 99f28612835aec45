//! The states that an operator sees.

/// The status of a message, with the names that operators see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// The message is due and was never tried.
    Pending,
    /// The message is not due before its scheduled time.
    Scheduled,
    /// The delivery failed and will be tried again.
    Retry,
    /// The delivery waits behind a failed message with the same key.
    Blocked,
    /// The delivery is not tried for now: its sink is down, paused or crowded, or a relay with its route is needed.
    /// `last_error` has the reason.
    Deferred,
    /// The sink confirmed the message.
    Delivered,
    /// The delivery failed and is not tried again; an operator can retry it.
    Dead,
}

impl Status {
    /// All states.
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

    /// The name of the status.
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
