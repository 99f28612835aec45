//! Headers for OpenTelemetry's propagators.

use opentelemetry::propagation::{Extractor, Injector};
use sendoff::Headers;

pub(crate) struct Writer<'a>(pub(crate) &'a mut Headers);

impl Injector for Writer<'_> {
    fn set(&mut self, name: &str, value: String) {
        // Propagators write an empty `tracestate` if there is none.
        if !value.is_empty() {
            self.0.insert(name, value);
        }
    }
}

pub(crate) struct Reader<'a>(pub(crate) &'a Headers);

impl Extractor for Reader<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }
}
