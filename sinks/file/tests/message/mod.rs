//! A message to publish.

use std::sync::Arc;
use std::time::SystemTime;

use sendoff::store::{Place, Room};
use sendoff::{Delivery, Headers, Uuid};

pub(crate) fn message(topic: &str, payload: String) -> Arc<Delivery> {
    Arc::new(Delivery {
        id: Uuid::now_v7(),
        topic: topic.into(),
        payload: payload.into(),
        content_type: None,
        headers: Headers::new(),
        key: Some("k".into()),
        aggregate_type: None,
        aggregate_id: None,
        schema_version: None,
        idempotency_key: None,
        priority: 0,
        created_at: SystemTime::UNIX_EPOCH,
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
    })
}
