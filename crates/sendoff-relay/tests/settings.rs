//! Settings that cannot work are refused when the relay is built.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test that is how it fails")]

use std::sync::Arc;

use async_trait::async_trait;
use sendoff::{ErrorKind, Outcome, Outgoing, Sink};
use sendoff_relay::{Relay, Settings};
use sendoff_testkit::MemoryStore;

struct Taking;

#[async_trait]
impl Sink for Taking {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        vec![Outcome::Delivered; batch.len()]
    }
}

#[test]
fn a_crash_limit_below_two_is_refused_with_what_to_set() {
    let built = |crash_limit| {
        let settings = Settings {
            crash_limit,
            ..Settings::default()
        };
        let relay = Relay::builder(Arc::new(MemoryStore::new())).sink("a", Arc::new(Taking));
        relay.settings(settings).build().map(drop)
    };
    for crash_limit in [0, 1] {
        let error = built(crash_limit).expect_err("one crash may have any reason");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("crash_limit"), "{error}");
        assert!(format!("{error:?}").contains("2 or more"), "{error:?}");
    }
    built(2).unwrap();
}
