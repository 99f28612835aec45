//! From the configuration to a relay.

use sendoff::{Error, ErrorKind, Result};
use sendoff_relay::{OnFailure, RelayBuilder, TopicPolicy};

use super::Config;

impl Config {
    /// Adds the settings, sinks, routes and topics to a relay.
    ///
    /// # Errors
    /// As [`Config::check_delivers`], and the errors of a sink about its settings.
    pub(crate) fn apply(&self, mut relay: RelayBuilder) -> Result<RelayBuilder> {
        self.check_delivers()?;
        relay = relay.settings(self.relay.settings()).default_policy(TopicPolicy {
            retry: self.retry.policy(),
            on_failure: OnFailure::default(),
        });
        for topic in &self.topics {
            relay = relay.topic(topic.pattern.clone(), topic.policy(&self.retry));
        }
        for sink in &self.sinks {
            let name = sink.name();
            if !self.routes.iter().any(|route| route.to.iter().any(|to| to == name)) {
                tracing::warn!(
                    event = "sink_without_route",
                    sink = name,
                    "no route leads to this sink, so it gets no messages"
                );
            }
            relay = relay.sink(name, sink.build()?).sink_settings(name, sink.settings());
        }
        if let Some(spans) = crate::trace::publish_spans() {
            relay = relay.middleware(spans);
        }
        for route in &self.routes {
            relay = relay.route(route.pattern.clone(), route.to.clone());
        }
        Ok(relay)
    }

    /// Fails unless there is a sink and a route.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when there is no sink or no route.
    pub(crate) fn check_delivers(&self) -> Result<()> {
        let Some(first) = self.sinks.first() else {
            return Err(Error::new(ErrorKind::Invalid, "no sink is configured")
                .because("the relay needs a sink to deliver to")
                .next_step("add a [[sink]] to the configuration file; `sendoff init` writes an example"));
        };
        if self.routes.is_empty() {
            let next = "add a [[route]] to the configuration file, such as match = \"*\" and to = ";
            return Err(Error::new(ErrorKind::Invalid, "no route is configured")
                .because("every message would become a dead letter")
                .next_step(format!("{next}[{:?}]", first.name())));
        }
        Ok(())
    }
}
