//! Defaults of settings that several sinks have, as serde takes them.

use std::time::Duration;

use crate::Template;

/// The template `{topic}`: the message's own topic.
pub fn topic() -> Template {
    // This template always parses.
    "{topic}".parse().unwrap_or_else(|_| unreachable!())
}

/// The `source` of CloudEvents.
pub fn source() -> String {
    "sendoff".to_owned()
}

/// How long connecting to a broker may take.
pub fn connect_timeout() -> Duration {
    Duration::from_secs(3)
}

/// How long a broker may take to confirm.
pub fn ack_timeout() -> Duration {
    Duration::from_secs(5)
}
