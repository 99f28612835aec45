//! From a message to what goes to the server.

use std::borrow::Cow;

use async_nats::HeaderMap;
use async_nats::header::{HeaderName, HeaderValue, IntoHeaderName as _, NATS_EXPECTED_STREAM, NATS_MESSAGE_ID};
use bytes::Bytes;
use sendoff::{Delivery, Outcome};
use sendoff_wire::escape::{Encodings, is_safe};
use sendoff_wire::{Format, Names};

use crate::NatsConfig;
use crate::error;
use crate::subject;

/// CloudEvents' attributes, as the NATS binding writes them.
const NAMES: Names = Names { prefix: "ce-" };
const CONTENT_TYPE: &str = "Content-Type";
/// Names that nearly every message has: these take no memory.
const FREQUENT: [&str; 5] = [CONTENT_TYPE, Format::ID, Format::TOPIC, Format::CREATED_AT, Format::KEY];

/// A message, ready to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) subject: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Writes a message. `limit` is the server's `max_payload`.
pub(crate) fn encode(config: &NatsConfig, delivery: &Delivery, limit: usize) -> Result<Outgoing, Outcome> {
    let filled = config.subject.fill_named(delivery, subject::escape);
    let subject = filled.map_err(|unfilled| Outcome::Permanent(unfilled.to_string().into()))?;
    if let Err(why) = subject::check(&subject) {
        return Err(error::bad_subject(&subject, why));
    }
    let encoded = config.format.encode(delivery, &config.source, NAMES);
    let (headers, size) = headers(config, delivery, encoded.headers, encoded.content_type);
    let size = size + encoded.body.len();
    if size > limit {
        return Err(error::too_large(size, limit));
    }
    Ok(Outgoing {
        subject,
        headers,
        body: encoded.body,
    })
}

type Header<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The headers, and how many bytes they have on the wire.
fn headers(
    config: &NatsConfig,
    delivery: &Delivery,
    own: Vec<Header<'_>>,
    content_type: Cow<'_, str>,
) -> (HeaderMap, usize) {
    let mut headers = HeaderMap::new();
    let mut size = "NATS/1.0\r\n\r\n".len();
    let mut put = |name: HeaderName, value: Cow<'_, str>| {
        size += text(&name).len() + value.len() + ": \r\n".len();
        headers.insert(name, HeaderValue::from(value.into_owned()));
    };
    put(NATS_MESSAGE_ID, delivery.id.to_string().into());
    if let Some(stream) = &config.stream {
        put(NATS_EXPECTED_STREAM, stream.into());
    }
    let mut encodings = Encodings::default();
    let mut put_safe = |name: &str, value: Cow<'_, str>| {
        let name = header_name(name, &mut encodings);
        let safe = match encodings.value(text(&name), &value, is_safe) {
            Cow::Owned(safe) => Some(safe),
            // It need not be copied.
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

/// A name with everything encoded that would end it.
fn header_name(name: &str, encodings: &mut Encodings) -> HeaderName {
    let is_safe = |letter: char| letter.is_ascii_graphic() && letter != ':';
    match FREQUENT.into_iter().find(|frequent| *frequent == name) {
        Some(frequent) => HeaderName::from_static(frequent),
        None => (&*encodings.name(name, is_safe)).into_header_name(),
    }
}

/// `Nats-` headers are orders to the server, such as `Nats-Rollup`, which empties a stream: they never come from a
/// message.
fn is_reserved(name: &str) -> bool {
    let begins = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("nats-"));
    name.is_empty() || begins || name.eq_ignore_ascii_case(CONTENT_TYPE) || Encodings::is_own(name)
}
