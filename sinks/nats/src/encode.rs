//! Encodes a message for NATS.

use std::borrow::Cow;

use async_nats::HeaderMap;
use async_nats::header::{HeaderName, HeaderValue, IntoHeaderName as _, NATS_EXPECTED_STREAM, NATS_MESSAGE_ID};
use bytes::Bytes;
use sendoff::{Outcome, Outgoing};
use sendoff_wire::escape::{Encodings, is_safe};
use sendoff_wire::{Format, Names};

use crate::NatsConfig;
use crate::error;
use crate::subject;

/// The prefix of CloudEvents attributes in the NATS binding.
const NAMES: Names = Names { prefix: "ce-" };
const CONTENT_TYPE: &str = "Content-Type";
/// Names that nearly every message has: they need no allocation.
const FREQUENT: [&str; 5] = [CONTENT_TYPE, Format::ID, Format::TOPIC, Format::CREATED_AT, Format::KEY];

/// An encoded message.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) subject: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Encodes a message. `limit` is the server's `max_payload`.
pub(crate) fn encode(config: &NatsConfig, outgoing: &Outgoing, limit: usize) -> Result<Prepared, Outcome> {
    let filled = config.subject.fill_named(outgoing, subject::escape);
    let subject = filled.map_err(|unfilled| Outcome::Permanent(unfilled.to_string().into()))?;
    if let Err(why) = subject::check(&subject) {
        return Err(error::bad_subject(&subject, why));
    }
    let encoded = config.format.encode(outgoing, &config.source, NAMES);
    let (headers, size) = headers(config, outgoing, encoded.headers, encoded.content_type);
    let size = size + encoded.body.len();
    if size > limit {
        return Err(error::too_large(size, limit));
    }
    Ok(Prepared {
        subject,
        headers,
        body: encoded.body,
    })
}

type Header<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The headers, and their size in bytes.
fn headers(
    config: &NatsConfig,
    outgoing: &Outgoing,
    own: Vec<Header<'_>>,
    content_type: Cow<'_, str>,
) -> (HeaderMap, usize) {
    let mut headers = HeaderMap::new();
    let mut size = "NATS/1.0\r\n\r\n".len();
    let mut put = |name: HeaderName, value: Cow<'_, str>| {
        size += text(&name).len() + value.len() + ": \r\n".len();
        headers.insert(name, HeaderValue::from(value.into_owned()));
    };
    put(NATS_MESSAGE_ID, outgoing.id.to_string().into());
    if let Some(stream) = &config.stream {
        put(NATS_EXPECTED_STREAM, stream.into());
    }
    let mut encodings = Encodings::default();
    let mut put_safe = |name: &str, value: Cow<'_, str>| {
        let name = header_name(name, &mut encodings);
        let safe = match encodings.value(text(&name), &value, is_safe) {
            Cow::Owned(safe) => Some(safe),
            // This needs no copy.
            Cow::Borrowed(_) => None,
        };
        put(name, safe.map_or(value, Cow::Owned));
    };
    put_safe(CONTENT_TYPE, content_type);
    for (name, value) in own.into_iter().filter(|(name, _)| !is_reserved(name)) {
        put_safe(&name, value);
    }
    for (name, value) in encodings.headers() {
        put(HeaderName::from_static(name), value.into());
    }
    (headers, size)
}

fn text(name: &HeaderName) -> &str {
    name.as_ref()
}

/// A header name, percent-encoded where a character would end it.
fn header_name(name: &str, encodings: &mut Encodings) -> HeaderName {
    let is_safe = |letter: char| letter.is_ascii_graphic() && letter != ':';
    match FREQUENT.into_iter().find(|frequent| *frequent == name) {
        Some(frequent) => HeaderName::from_static(frequent),
        None => (&*encodings.name(name, is_safe)).into_header_name(),
    }
}

/// Whether a header is reserved. `Nats-` headers are commands to the server, for example `Nats-Rollup` empties a
/// stream, so they never come from a message.
fn is_reserved(name: &str) -> bool {
    let begins = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("nats-"));
    name.is_empty() || begins || name.eq_ignore_ascii_case(CONTENT_TYPE) || Encodings::is_own(name)
}
