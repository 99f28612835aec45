//! The messages of the cases.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sendoff::store::{Place, Room};
use sendoff::{Delivery, Headers, Uuid};

/// The topic of most messages.
pub(super) const TOPIC: &str = "suite.numbered";

/// A plain message with a number in it, and as long as an ordinary one.
pub(super) fn numbered(n: usize) -> Arc<Delivery> {
    let filling = "x".repeat(200);
    Arc::new(delivery(format!("{{\"n\":{n},\"filling\":\"{filling}\"}}")))
}

/// So many of them, numbered from 0.
pub(super) fn batch(count: usize) -> Vec<Arc<Delivery>> {
    (0..count).map(numbered).collect()
}

/// One of a key.
pub(super) fn keyed(key: &str, n: usize) -> Arc<Delivery> {
    let mut delivery = (*numbered(n)).clone();
    delivery.key = Some(key.to_owned());
    delivery.into()
}

/// One with a payload of so many bytes.
pub(super) fn large(bytes: usize) -> Arc<Delivery> {
    let mut delivery = delivery(vec![b'x'; bytes]);
    delivery.content_type = Some("application/octet-stream".to_owned());
    delivery.into()
}

/// The least that a message can be.
pub(super) fn delivery(payload: impl Into<Bytes>) -> Delivery {
    Delivery {
        id: Uuid::now_v7(),
        topic: TOPIC.to_owned(),
        payload: payload.into(),
        content_type: None,
        headers: Headers::new(),
        key: None,
        aggregate_type: None,
        aggregate_id: None,
        schema_version: None,
        idempotency_key: None,
        priority: 0,
        created_at: SystemTime::UNIX_EPOCH + Duration::from_micros(1_769_860_800_000_001),
        expires_at: None,
        attempts: 0,
        max_attempts: None,
        place: Place {
            room: Room::Ready,
            lane: 0,
            seq: 1,
            leg: None,
            spot: 0,
        },
    }
}
