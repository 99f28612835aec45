//! The fields of one span.

use std::fmt;

use serde_json::Value;
use tracing::field::{Field, Visit};

use crate::LogContext;

/// The stored fields of a span.
pub(crate) struct SpanFields(pub(crate) Vec<(&'static str, Value)>);

/// Stores the selected fields.
pub(crate) struct Writer<'a> {
    pub(crate) context: &'a LogContext,
    pub(crate) fields: &'a mut SpanFields,
}

impl Writer<'_> {
    fn write(&mut self, field: &Field, value: impl FnOnce() -> Value) {
        if !self.context.wants(field.name()) {
            return;
        }
        let known = self.fields.0.iter_mut().find(|(name, _)| *name == field.name());
        match known {
            Some((_, known)) => *known = value(),
            None => self.fields.0.push((field.name(), value())),
        }
    }
}

impl Visit for Writer<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write(field, || format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.write(field, || value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.write(field, || value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field, || value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.write(field, || value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write(field, || value.into());
    }
}
