//! Health of the sources of one process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sendoff::Error;

use super::about;

/// The health of one source.
#[derive(Debug)]
pub(crate) enum State {
    /// Not contacted yet.
    Starting,
    /// A relay serves it and handles outages of its database.
    Serving,
    /// Its database is unreachable or unusable; it is retried.
    Down(Error),
}

/// The health of all sources. Cheap to clone; clones share their state.
#[derive(Clone)]
pub(crate) struct Health(Arc<Mutex<Vec<(String, State)>>>);

impl Health {
    /// The health of sources with these names.
    pub(super) fn new(names: impl Iterator<Item = String>) -> Self {
        Self(Arc::new(Mutex::new(
            names.map(|name| (name, State::Starting)).collect(),
        )))
    }

    pub(super) fn set(&self, source: &str, state: State) {
        if let Some((_, is)) = self.lock().iter_mut().find(|(name, _)| name == source) {
            *is = state;
        }
    }

    /// Whether no source is served and waiting would not help: every source has a permanent error.
    pub(super) fn is_hopeless(&self) -> bool {
        let for_good = |state: &State| matches!(state, State::Down(error) if !error.is_temporary());
        self.lock().iter().all(|(_, state)| for_good(state))
    }

    /// The error of the first source that is not served.
    pub(super) fn first_down(&self) -> Option<Error> {
        self.lock().iter().find_map(|(name, state)| match state {
            State::Down(error) => Some(about(name, error)),
            State::Starting | State::Serving => None,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, State)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use sendoff::ErrorKind;

    use super::*;

    #[test]
    fn it_is_hopeless_only_when_every_source_needs_somebody() {
        let health = Health::new(["a", "b"].map(str::to_owned).into_iter());
        let down = |kind| State::Down(Error::new(kind, "x"));
        assert!(!health.is_hopeless() && health.first_down().is_none());
        health.set("a", down(ErrorKind::SchemaMissing));
        assert!(!health.is_hopeless(), "the other has not been asked");
        health.set("b", down(ErrorKind::Unreachable));
        assert!(!health.is_hopeless(), "the other may come back");
        health.set("b", down(ErrorKind::Denied));
        assert!(health.is_hopeless());
        health.set("a", State::Serving);
        assert!(!health.is_hopeless());
        let first = health.first_down().unwrap();
        assert_eq!((first.kind(), first.what()), (ErrorKind::Denied, "source b: x"));
    }
}
