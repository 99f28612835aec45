//! Endpoints that answered 410 Gone.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use url::Url;

/// The most endpoints to remember. The next message to any further one is sent, and answered with 410 again.
const MOST: usize = 10_000;

/// The endpoints that answered `410 Gone` since this process started.
#[derive(Debug, Default)]
pub(crate) struct Gone(Mutex<HashSet<String>>);

impl Gone {
    /// Notes an endpoint. Returns whether it was unknown.
    pub(crate) fn note(&self, url: &Url) -> bool {
        let mut gone = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gone.len() < MOST && gone.insert(url.as_str().to_owned())
    }

    /// Whether an endpoint is gone.
    pub(crate) fn contains(&self, url: &Url) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(url.as_str())
    }
}
