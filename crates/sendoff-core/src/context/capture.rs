//! Captures the caller's context into headers.

use super::{BAGGAGE, SENTRY_TRACE, TRACEPARENT, TRACESTATE};
use crate::Headers;

/// Captures the context of an emit: the trace and the log context of the caller.
///
/// ```
/// use sendoff::{Context, Headers, Outbox};
///
/// struct Tenant;
///
/// impl Context for Tenant {
///     fn capture(&self, headers: &mut Headers) {
///         headers.insert("x-tenant", "acme");
///     }
/// }
///
/// let outbox = Outbox::builder().context(Tenant).build();
/// # let _ = outbox;
/// ```
pub trait Context: Send + Sync + 'static {
    /// Adds headers with the caller's context. The outbox calls it once per emit, whatever the number of messages, on
    /// the caller's thread and inside the span `emit`. `headers` has the headers that earlier contexts added.
    ///
    /// A header that the message already has is not changed. A context cannot make an emit fail.
    fn capture(&self, headers: &mut Headers);
}

/// Adds captured headers to a message. A header that the message already has is kept, and the trace headers of two
/// spans are not mixed: a message with its own `traceparent` gets no captured `tracestate`, and a message with its own
/// `sentry-trace` gets no captured Sentry baggage.
pub(crate) fn add_captured(own: &mut Headers, captured: &Headers) {
    let own_trace = own.get(TRACEPARENT).is_some();
    let own_sentry = own.get(SENTRY_TRACE).is_some();
    for (name, value) in captured {
        // Text that a database cannot store would make the emit fail.
        let is_bad = name.is_empty() || name.len() > 1024 || name.contains('\0') || value.contains('\0');
        if is_bad || own.get(name).is_some() || (name == TRACESTATE && own_trace) {
            continue;
        }
        if name == BAGGAGE && own_sentry {
            let others: Vec<&str> = value.split(',').filter(|entry| !is_sentrys(entry)).collect();
            if !others.is_empty() {
                own.insert(name, others.join(","));
            }
            continue;
        }
        own.insert(name, value);
    }
}

fn is_sentrys(entry: &str) -> bool {
    entry.trim_start().starts_with("sentry-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(own: &[(&str, &str)], captured: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut headers = Headers::from_iter(own.iter().copied());
        add_captured(&mut headers, &Headers::from_iter(captured.iter().copied()));
        headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn pairs(headers: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        headers.iter().map(owned).collect()
    }

    #[test]
    fn what_the_message_says_counts_more() {
        let found = added(&[("baggage", "own"), ("x", "1")], &[("baggage", "other"), ("y", "2")]);
        assert_eq!(found, pairs(&[("baggage", "own"), ("x", "1"), ("y", "2")]));
    }

    #[test]
    fn the_states_of_two_traces_are_not_mixed() {
        let found = added(&[("traceparent", "own")], &[("traceparent", "a"), ("tracestate", "a")]);
        assert_eq!(found, pairs(&[("traceparent", "own")]));
        let captured = [("baggage", "tenant=7,sentry-trace_id=a, sentry-sampled=true,b=1")];
        let found = added(&[("sentry-trace", "own")], &captured);
        assert_eq!(found, pairs(&[("baggage", "tenant=7,b=1"), ("sentry-trace", "own")]));
    }

    #[test]
    fn a_context_cannot_make_an_emit_fail() {
        assert_eq!(
            added(&[], &[("", "x"), ("nul", "a\0b"), ("ok", "1")]),
            pairs(&[("ok", "1")])
        );
    }
}
