//! Sentry for Sendoff: the caller's `sentry-trace` and `baggage` in every message.
//!
//! ```
//! use sendoff::Outbox;
//! use sendoff_sentry::SentryContext;
//!
//! // let _guard = sentry::init(…);
//! let outbox = Outbox::builder().context(SentryContext).build();
//! # let _ = outbox;
//! ```
//!
//! Sentry's integrations for Celery, HTTP and others continue a trace from these headers. Without a Sentry client on
//! the caller's hub, nothing is added.
#![forbid(unsafe_code)]

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sendoff::context::{BAGGAGE, SENTRY_TRACE};
use sendoff::{Context, Headers};
use sentry_core::{Client, Hub};

/// Characters of a baggage value that need no encoding, in addition to letters and digits.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Adds the headers of the trace on the caller's hub: of its span or, without one, of its scope.
///
/// `baggage` gets Sentry's entries for sampling (trace id, public key, release, environment, sampling decision), from
/// the client's options, in addition to the entries of other contexts. The Rust SDK does not keep the baggage of an
/// incoming request, so the entries of a trace that started elsewhere are lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct SentryContext;

impl Context for SentryContext {
    fn capture(&self, headers: &mut Headers) {
        let hub = Hub::current();
        let Some(client) = hub.client() else { return };
        let mut traced = None;
        hub.configure_scope(|scope| {
            for (name, value) in scope.iter_trace_propagation_headers() {
                if name == SENTRY_TRACE {
                    traced = Some(value.clone());
                }
                headers.insert(name, value);
            }
        });
        if let Some(traced) = traced {
            let mut entries: Vec<String> = headers.get(BAGGAGE).map(str::to_owned).into_iter().collect();
            entries.extend(sampling_entries(&client, &traced));
            headers.insert(BAGGAGE, entries.join(","));
        }
    }
}

/// Sentry's dynamic sampling context.
fn sampling_entries(client: &Client, traced: &str) -> Vec<String> {
    let mut parts = traced.split('-');
    let trace_id = parts.next().map(str::to_owned);
    let sampled = match parts.nth(1) {
        Some("1") => Some("true".to_owned()),
        Some("0") => Some("false".to_owned()),
        _ => None,
    };
    let options = client.options();
    let entries = [
        ("trace_id", trace_id),
        ("public_key", client.dsn().map(|dsn| dsn.public_key().to_owned())),
        ("release", options.release.as_deref().map(str::to_owned)),
        ("environment", options.environment.as_deref().map(str::to_owned)),
        ("sampled", sampled),
    ];
    let entry = |(name, value): (&str, Option<String>)| {
        Some(format!("sentry-{name}={}", utf8_percent_encode(&value?, ENCODED)))
    };
    entries.into_iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sentry_core::{ClientOptions, TransactionContext, test};

    use super::*;

    fn captured() -> Headers {
        let mut headers = Headers::from_iter([("baggage", "tenant=7")]);
        SentryContext.capture(&mut headers);
        headers
    }

    #[test]
    fn an_open_transaction_travels_with_its_baggage() {
        let options = ClientOptions::new()
            .dsn("https://public@sentry.invalid/1")
            .release("shop@1.0")
            .environment("production")
            .traces_sample_rate(1.0);
        test::with_captured_events_options(
            || {
                let transaction = sentry_core::start_transaction(TransactionContext::new("request", "http.server"));
                sentry_core::configure_scope(|scope| scope.set_span(Some(transaction.clone().into())));
                let headers = captured();
                let expected = transaction.iter_headers().next().unwrap().1;
                assert_eq!(headers.get("sentry-trace"), Some(expected.as_str()));
                assert!(expected.ends_with("-1"), "{expected}");
                let trace_id = expected.split('-').next().unwrap();
                let baggage = format!(
                    "tenant=7,sentry-trace_id={trace_id},sentry-public_key=public,sentry-release=shop%401.0,\
                     sentry-environment=production,sentry-sampled=true"
                );
                assert_eq!(headers.get("baggage"), Some(baggage.as_str()));
            },
            options,
        );
    }

    #[test]
    fn without_sentry_nothing_is_added() {
        let hub = Arc::new(Hub::new(None, Arc::default()));
        Hub::run(hub, || {
            assert_eq!(captured(), Headers::from_iter([("baggage", "tenant=7")]));
        });
    }
}
