//! A message as a relay hands it to a sink.

use std::time::SystemTime;

use bytes::Bytes;
use sendoff::store::{Place, Room};
use sendoff::{Delivery, Headers, Uuid};

/// The least that a message can be, with an id of its own. The rest is for the test to fill in:
///
/// ```
/// # use sendoff::Delivery;
/// # use sendoff_testkit::delivery;
/// let keyed = Delivery {
///     key: Some("customer-7".into()),
///     ..delivery("order.placed", "{}")
/// };
/// # assert_eq!((keyed.topic.as_str(), &keyed.payload[..]), ("order.placed", b"{}".as_slice()));
/// ```
pub fn delivery(topic: &str, payload: impl Into<Bytes>) -> Delivery {
    Delivery {
        id: Uuid::now_v7(),
        topic: topic.to_owned(),
        payload: payload.into(),
        content_type: None,
        headers: Headers::new(),
        key: None,
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
            id: sendoff::Uuid::nil().into(),
            spot: 0,
        },
    }
}
