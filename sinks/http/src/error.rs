//! Outcomes of requests without an answer.

use std::error::Error as StdError;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Outcome};

use crate::answer::Shared;
use crate::guard::Refused;

/// What to do about a server that cannot be reached.
pub(crate) const CHECK_SERVER: &str = "check that the server is running and that `url` of the sink is correct";

/// The outcome of a request without an answer. `limit` is the timeout.
pub(crate) fn outcome(error: &reqwest::Error, origin: &str, shared: Shared, limit: Duration) -> Outcome {
    if let Some(refused) = refused(error) {
        return refusal(refused, shared);
    }
    if error.is_builder() {
        // The outer error quotes the URL.
        let why = match chain(error).count() {
            1 => "the URL is not valid in HTTP, or is too long".to_owned(),
            _ => root(error),
        };
        return Outcome::Permanent(
            format!(
                "the request to {origin} cannot be built: {why} (correct `url` and `headers` of \
                                           the sink, or the message, then retry it)"
            )
            .into(),
        );
    }
    if error.is_connect() {
        return unreachable(&why(error), origin, shared);
    }
    // From here on the request may have arrived.
    if error.is_timeout() {
        let said =
            format!("{origin} gave no answer within {limit:?} (it may have received the message; it is sent again)");
        return Outcome::Unknown(said.into());
    }
    let why = root(error);
    Outcome::Unknown(
        format!(
            "the connection to {origin} ended before the answer: {why} (the endpoint may have received the message; it \
             is sent again)"
        )
        .into(),
    )
}

/// Whether the connection ended during a request. An HTTP/2 stream that the endpoint reset concerns this request only.
pub(crate) fn is_of_the_connection(error: &reqwest::Error) -> bool {
    let mut causes = chain(error).filter_map(|error| error.downcast_ref::<h2::Error>());
    !(error.is_timeout() || error.is_connect() || error.is_builder() || causes.any(h2::Error::is_reset))
}

/// The connection failed: nothing was sent.
fn unreachable(why: &str, origin: &str, shared: Shared) -> Outcome {
    let said = format!("cannot connect to {origin}: {why}");
    if shared.origin {
        Outcome::SinkDown(format!("{said} ({CHECK_SERVER}; messages are deferred)").into())
    } else {
        Outcome::Temporary(format!("{said} (the message is tried again)").into())
    }
}

/// The address is private, and not allowed.
pub(crate) fn refusal(refused: &Refused, shared: Shared) -> Outcome {
    if shared.origin {
        Outcome::SinkDown(refused.to_string().into())
    } else {
        Outcome::Permanent(refused.to_string().into())
    }
}

/// Not sent, because other requests get no answer either.
pub(crate) fn too_slow(origin: &str, why: &str, shared: Shared) -> Outcome {
    let said = format!("not sent: {origin} is too slow: {why}");
    if shared.origin {
        Outcome::SinkDown(
            format!("{said} (make the endpoint faster, or raise `request_timeout` of the sink; messages are deferred)")
                .into(),
        )
    } else {
        Outcome::Temporary(format!("{said} (the message is tried again)").into())
    }
}

/// Not sent, because the settings do not allow a body of this size.
pub(crate) fn too_large(size: usize, limit: usize) -> Outcome {
    let next =
        "raise `max_message_bytes` of the sink if the endpoint accepts it, then retry the message, or send a reference";
    Outcome::Permanent(format!("the message's body has {size} bytes, and {limit} are allowed ({next})").into())
}

/// Not sent, because no endpoint would read that many headers.
pub(crate) fn too_many_headers(count: usize, most: usize) -> Outcome {
    let next = "move data from the headers to the payload, or discard the message";
    Outcome::Permanent(format!("the message has {count} headers, and at most {most} can be sent ({next})").into())
}

/// Not sent, because the settings do not allow headers of this size.
pub(crate) fn headers_too_large(size: usize, limit: usize) -> Outcome {
    let next = "raise `max_header_bytes` of the sink if the endpoint accepts it, then retry the message, or move data \
                to the payload";
    Outcome::Permanent(format!("the message's headers have {size} bytes, and {limit} are allowed ({next})").into())
}

/// For [`sendoff::Sink::check`].
pub(crate) fn unchecked(what: &str, error: std::io::Error) -> Error {
    let refused = refused(&error);
    let kind = if refused.is_some() {
        ErrorKind::Denied
    } else {
        ErrorKind::Unreachable
    };
    let next = match refused {
        Some(_) => "if this is intended, add the network of the address to `allow_private` of the sink",
        None if is_tls(&error) => {
            "check the certificate of the server, and `ca_file`, `cert_file` and `key_file` of the sink"
        }
        None => CHECK_SERVER,
    };
    let why = root(&error);
    let why = why.split(" (if this is intended").next().unwrap_or_default().to_owned();
    Error::new(kind, what).because(why).next_step(next).with_source(error)
}

/// Whether certificates or versions of TLS are the reason.
fn is_tls(error: &std::io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.downcast_ref::<rustls::Error>().is_some())
}

fn why(error: &reqwest::Error) -> String {
    match root(error) {
        // The client's own text for a timeout has no cause.
        _ if error.is_timeout() => "no answer in time".to_owned(),
        why => why,
    }
}

/// The text of the root cause. The outer errors quote the URL, which may hold a secret.
fn root(error: &(dyn StdError + 'static)) -> String {
    chain(error).last().map_or_else(String::new, ToString::to_string)
}

fn refused<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Refused> {
    chain(error).find_map(|error| {
        let within = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
            .and_then(|inner| inner.downcast_ref());
        error.downcast_ref().or(within)
    })
}

fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| StdError::source(*error))
}
