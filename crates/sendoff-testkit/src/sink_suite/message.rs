//! The messages of the cases.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sendoff::Outgoing;

/// The topic of most messages.
pub(super) const TOPIC: &str = "suite.numbered";

/// A plain message with a number in it, and as long as an ordinary one.
pub(super) fn numbered(n: usize) -> Arc<Outgoing> {
    let filling = "x".repeat(200);
    Arc::new(outgoing(format!("{{\"n\":{n},\"filling\":\"{filling}\"}}")))
}

/// So many of them, numbered from 0.
pub(super) fn batch(count: usize) -> Vec<Arc<Outgoing>> {
    (0..count).map(numbered).collect()
}

/// One with a payload of so many bytes.
pub(super) fn large(bytes: usize) -> Arc<Outgoing> {
    let mut outgoing = outgoing(vec![b'x'; bytes]);
    outgoing.content_type = Some("application/octet-stream".to_owned());
    outgoing.into()
}

/// The least that a message can be.
pub(super) fn outgoing(payload: impl Into<Bytes>) -> Outgoing {
    Outgoing {
        created_at: SystemTime::UNIX_EPOCH + Duration::from_micros(1_769_860_800_000_001),
        ..crate::outgoing(TOPIC, payload)
    }
}
