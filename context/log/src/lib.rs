//! Log context for Sendoff: the fields of the caller's spans, in every message.
//!
//! [`LogContext`] has two parts that share one list of fields: a layer of the application's `tracing` subscriber, which
//! stores the fields of spans, and a [`Context`] of its outbox, which writes the fields of the spans around an emit
//! into the header [`LOG_CONTEXT`], as one JSON object. The relay adds it to its log lines about the message, and to
//! its publish span; a consumer can read it, too.
//!
//! ```
//! use sendoff::Outbox;
//! use sendoff_log_context::LogContext;
//! use tracing_subscriber::prelude::*;
//!
//! // All fields: LogContext::all(). Off: neither of the two lines below.
//! let context = LogContext::only(["request_id", "user_id"]);
//! let subscriber = tracing_subscriber::registry().with(context.layer());
//! # let _guard = tracing::subscriber::set_default(subscriber);
//! # #[cfg(any())]
//! subscriber.init();
//! let outbox = Outbox::builder().context(context).build();
//!
//! let _request = tracing::info_span!("request", request_id = "a-1", user_id = 42, password = "…").entered();
//! // outbox.emit(…) stores the header log-context: {"request_id":"a-1","user_id":42}
//! # let mut headers = sendoff::Headers::new();
//! # sendoff::Context::capture(&LogContext::only(["request_id", "user_id"]), &mut headers);
//! # assert_eq!(headers.get("log-context"), Some(r#"{"request_id":"a-1","user_id":42}"#));
//! # let _ = outbox;
//! ```
#![forbid(unsafe_code)]

mod fields;
mod layer;

use std::sync::Arc;

use sendoff::context::LOG_CONTEXT;
use sendoff::{Context, Headers};
use serde_json::{Map, Value};
use tracing_subscriber::Registry;
use tracing_subscriber::registry::{LookupSpan, SpanData};

use fields::SpanFields;
pub use layer::LogContextLayer;

/// The longest log context, in bytes. Fields beyond this limit are left out, those of outer spans first. Brokers and
/// web servers refuse messages whose headers are too long, and a message is more important than its log context.
pub const LONGEST: usize = 4096;

/// Selects the fields of spans that are sent with messages.
#[derive(Debug, Clone)]
pub struct LogContext {
    names: Option<Arc<[String]>>,
}

impl LogContext {
    /// Sends all fields of all spans around an emit, except Sendoff's own.
    pub fn all() -> Self {
        Self { names: None }
    }

    /// Sends only fields with these names.
    pub fn only(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            names: Some(names.into_iter().map(Into::into).collect()),
        }
    }

    /// The layer that stores the fields of spans. Without it in the subscriber, no log context is sent.
    pub fn layer(&self) -> LogContextLayer {
        LogContextLayer::new(self.clone())
    }

    fn wants(&self, name: &str) -> bool {
        self.names
            .as_ref()
            .is_none_or(|names| names.iter().any(|wanted| wanted == name))
    }
}

impl Context for LogContext {
    fn capture(&self, headers: &mut Headers) {
        let fields = fields_here(self);
        if !fields.is_empty() {
            headers.insert(LOG_CONTEXT, Value::Object(fields).to_string());
        }
    }
}

/// The fields of the spans around the caller; inner spans take precedence.
fn fields_here(context: &LogContext) -> Map<String, Value> {
    let mut found = Map::new();
    let mut bytes = "{}".len();
    tracing::dispatcher::get_default(|dispatch| {
        let current = dispatch.current_span();
        let (Some(registry), Some(id)) = (dispatch.downcast_ref::<Registry>(), current.id()) else {
            return;
        };
        let mut next = Some(id.clone());
        while let Some(data) = next.and_then(|id| registry.span_data(&id)) {
            if let Some(SpanFields(fields)) = data.extensions().get::<SpanFields>() {
                for (name, value) in fields {
                    // `"name":value,`
                    let length = name.len() + value.to_string().len() + 4;
                    if context.wants(name) && !found.contains_key(*name) && bytes + length <= LONGEST {
                        bytes += length;
                        found.insert((*name).to_owned(), value.clone());
                    }
                }
            }
            next = data.parent().cloned();
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use tracing::{Subscriber, info_span};
    use tracing_subscriber::prelude::*;

    use super::*;

    fn subscriber(context: &LogContext) -> impl Subscriber {
        tracing_subscriber::registry().with(context.layer())
    }

    fn captured(context: &LogContext) -> Option<Value> {
        let mut headers = Headers::new();
        context.capture(&mut headers);
        headers.get(LOG_CONTEXT).map(|text| serde_json::from_str(text).unwrap())
    }

    #[test]
    fn fields_of_all_spans_around_are_there_and_inner_ones_count_more() {
        let context = LogContext::all();
        tracing::subscriber::with_default(subscriber(&context), || {
            assert_eq!(captured(&context), None);
            let outer = info_span!("request", request_id = "a-1", user = 1, late = tracing::field::Empty);
            let _outer = outer.enter();
            let _inner = info_span!("order", user = 2, paid = true, total = 1.5, who = ?Some("x")).entered();
            outer.record("late", "yes");
            let expected = serde_json::json!({
                "request_id": "a-1", "user": 2, "late": "yes", "paid": true, "total": 1.5, "who": "Some(\"x\")",
            });
            assert_eq!(captured(&context), Some(expected));
        });
    }

    #[test]
    fn only_what_is_listed_travels() {
        let context = LogContext::only(["request_id"]);
        tracing::subscriber::with_default(subscriber(&context), || {
            let _outer = info_span!("request", request_id = "a-1", password = "hunter2").entered();
            let _inner = info_span!("order", password = "hunter2").entered();
            assert_eq!(captured(&context), Some(serde_json::json!({"request_id": "a-1"})));
        });
    }

    #[test]
    fn what_is_too_long_is_left_out() {
        let context = LogContext::all();
        tracing::subscriber::with_default(subscriber(&context), || {
            let _outer = info_span!("request", request_id = "a-1").entered();
            let _inner = info_span!("order", body = "x".repeat(LONGEST)).entered();
            assert_eq!(captured(&context), Some(serde_json::json!({"request_id": "a-1"})));
        });
    }

    #[test]
    fn without_the_layer_or_a_subscriber_there_is_none() {
        assert_eq!(captured(&LogContext::all()), None);
        tracing::subscriber::with_default(tracing_subscriber::registry(), || {
            let _span = info_span!("request", request_id = "a-1").entered();
            assert_eq!(captured(&LogContext::all()), None);
        });
    }
}
