//! Several databases served by one process: each has its own store, relay, routes and health, so that an outage of one
//! does not stop the others.

mod health;
mod once;
mod serve;

use std::sync::Arc;

use sendoff::{Error, Result};
use sendoff_relay::{Relay, RelayBuilder};
use sendoff_watch::{Subject, Surroundings, Watch};

use crate::config::Config;
use crate::session::host;
use crate::store::Store;

pub(crate) use health::{Health, State};
pub(crate) use once::once;
pub(crate) use serve::serve;

/// One database with the configuration of its deliveries.
pub(crate) struct Source {
    /// Its name, for people.
    pub(crate) name: String,
    store: Store,
    config: Config,
    observer: Option<Arc<Subject>>,
}

impl Source {
    /// The configured sources, or the one with this name. Their databases are not queried yet.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when the configuration of one of them is invalid.
    pub(crate) fn open_all(config: &Config, only: Option<&str>) -> Result<Vec<Self>> {
        let chosen = config.sources(only)?;
        let mut sources = Vec::with_capacity(chosen.len());
        for source in chosen {
            let config = config.of_source(source);
            let opened = Store::open(&config.database).map_err(|error| about(&source.name, &error))?;
            let source = Self {
                name: source.name.clone(),
                store: opened,
                config,
                observer: None,
            };
            source.relay()?;
            sources.push(source);
        }
        Ok(sources)
    }

    /// Adds the source to a watch.
    ///
    /// # Errors
    /// The errors of a sink about its settings.
    pub(crate) fn watched(&mut self, watch: &mut Watch) -> Result<(Arc<Subject>, Surroundings)> {
        let subject = watch.subject(&self.name);
        self.observer = Some(subject.clone());
        let surroundings = Surroundings {
            store: self.store.relay.clone(),
            migrate: Some(self.store.migrate.clone()),
            sinks: self.relay()?.sinks(),
        };
        Ok((subject, surroundings))
    }

    /// A relay for one run.
    fn relay(&self) -> Result<Relay> {
        let build = |relay: RelayBuilder| self.config.apply(relay)?.build();
        let name = format!("{}:{}", host(), std::process::id());
        let mut builder = Relay::builder(self.store.relay.clone()).name(name);
        if let Some(observer) = &self.observer {
            builder = builder.observer(observer.clone());
        }
        build(builder).map_err(|error| about(&self.name, &error))
    }
}

/// The same error, with the name of its source.
pub(super) fn about(source: &str, error: &Error) -> Error {
    let mut told = Error::new(error.kind(), format!("source {source}: {}", error.what()));
    if let Some(why) = error.why() {
        told = told.because(why);
    }
    match error.next() {
        Some(next) => told.next_step(next),
        None => told,
    }
}
