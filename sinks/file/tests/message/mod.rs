//! A message to publish.

use std::sync::Arc;

use sendoff::Outgoing;
use sendoff_testkit::outgoing;

pub(crate) fn message(topic: &str, payload: String) -> Arc<Outgoing> {
    Arc::new(Outgoing {
        key: Some("k".into()),
        ..outgoing(topic, payload)
    })
}
