//! A message as a relay hands it to a sink.

use bytes::Bytes;
use sendoff::store::{RowRef, Table};
use sendoff::{Outgoing, Uuid};

/// The least that a message can be, with an id of its own. The rest is for the test to fill in:
///
/// ```
/// # use sendoff::Outgoing;
/// # use sendoff_testkit::outgoing;
/// let keyed = Outgoing {
///     key: Some("customer-7".into()),
///     ..outgoing("order.placed", "{}")
/// };
/// # assert_eq!((keyed.topic.as_str(), &keyed.payload[..]), ("order.placed", b"{}".as_slice()));
/// ```
pub fn outgoing(topic: &str, payload: impl Into<Bytes>) -> Outgoing {
    Outgoing {
        id: Uuid::now_v7(),
        topic: topic.to_owned(),
        payload: payload.into(),
        ..Outgoing::blank(RowRef {
            table: Table::Ready,
            lane: 0,
            seq: 1,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        })
    }
}
