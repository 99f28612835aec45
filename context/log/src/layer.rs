//! A layer that stores the fields of spans.

use tracing::Subscriber;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::LogContext;
use crate::fields::{SpanFields, Writer};

/// Stores the fields of spans for [`LogContext`]. Created by [`LogContext::layer`].
#[derive(Debug)]
pub struct LogContextLayer {
    context: LogContext,
}

impl LogContextLayer {
    pub(crate) fn new(context: LogContext) -> Self {
        Self { context }
    }
}

/// The target of the emit's own span, whose fields do not describe the caller.
const OWN: &str = "sendoff";

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogContextLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let target = attributes.metadata().target();
        if target == OWN || target.starts_with("sendoff::") {
            return;
        }
        let mut fields = SpanFields(Vec::new());
        attributes.record(&mut Writer {
            context: &self.context,
            fields: &mut fields,
        });
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<SpanFields>() {
            values.record(&mut Writer {
                context: &self.context,
                fields,
            });
        }
    }
}
