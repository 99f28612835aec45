//! A message to publish.

use std::sync::Arc;

use sendoff::Delivery;
use sendoff_testkit::delivery;

pub(crate) fn message(topic: &str, payload: String) -> Arc<Delivery> {
    Arc::new(Delivery {
        key: Some("k".into()),
        ..delivery(topic, payload)
    })
}
