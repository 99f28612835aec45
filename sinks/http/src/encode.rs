//! A message becomes the headers and the body of a request.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use sendoff::Delivery;
use sendoff_wire::{Format, Names};

/// What the names of CloudEvents' attributes start with, in binary mode.
const NAMES: Names = Names { prefix: "ce-" };

/// What the connection itself needs, and what would let a message pass for another or cut a request in two.
const OURS: [&str; 16] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "via",
];

/// A message that is ready to be signed and sent.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Whether a header is set by the sink itself, so that neither a message nor a setting can.
pub(crate) fn is_ours(name: &HeaderName) -> bool {
    OURS.contains(&name.as_str()) || name.as_str().starts_with("webhook-")
}

/// Writes a message. `extra` are the configured headers, which win over those of the message. The error tells why this
/// message can never be sent.
pub(crate) fn encode(delivery: &Delivery, format: Format, source: &str, extra: &HeaderMap) -> Result<Encoded, String> {
    let encoded = format.encode(delivery, source, NAMES);
    let mut headers = HeaderMap::with_capacity(encoded.headers.len() + extra.len() + 4);
    for (name, value) in &encoded.headers {
        let Ok(parsed) = HeaderName::try_from(name.as_ref()) else {
            // An envelope has all headers in its body, too.
            if format == Format::Envelope {
                continue;
            }
            return Err(format!(
                "its header {name:?} cannot go over HTTP, where names are letters, digits and - (use the format envelope, \
                 or another name)"
            ));
        };
        if !is_ours(&parsed) {
            headers.insert(parsed, header_value(name, value)?);
        }
    }
    headers.insert(
        CONTENT_TYPE,
        header_value(CONTENT_TYPE.as_str(), &encoded.content_type)?,
    );
    for (name, value) in extra {
        headers.insert(name, value.clone());
    }
    Ok(Encoded {
        headers,
        body: encoded.body,
    })
}

/// Values are printable ASCII on the wire. Everything else is percent-encoded, as the HTTP binding of CloudEvents says
/// for its attributes. Fields of the message (`sendoff-*`, `ce-*`) always have their `%` encoded as well, so that they
/// can always be decoded; another header is left alone as long as it is printable, because `baggage` and its like have
/// percent signs of their own.
fn header_value(name: &str, value: &str) -> Result<HeaderValue, String> {
    let in_front = |prefix: &str| {
        name.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let is_event = in_front("ce-");
    let is_printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim_matches(' ') == value;
    let encoded = if is_printable && !is_event && !in_front("sendoff-") {
        HeaderValue::try_from(value)
    } else {
        HeaderValue::try_from(percent_encoded(value, is_event))
    };
    encoded.map_err(|_| format!("the value of its header {name:?} cannot go over HTTP"))
}

fn percent_encoded(value: &str, is_event: bool) -> String {
    let mut out = String::with_capacity(value.len() + 8);
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            // White space at the ends would be cut off on the way.
            b' ' if !is_event && at != 0 && at != last => out.push(' '),
            b'"' if !is_event => out.push('"'),
            b'%' | b' ' | b'"' => push_encoded(byte, &mut out),
            b'!'..=b'~' => out.push(char::from(byte)),
            _ => push_encoded(byte, &mut out),
        }
    }
    out
}

/// Appends `%XX`.
pub(crate) fn push_encoded(byte: u8, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(HEX[usize::from(byte >> 4)]));
    out.push(char::from(HEX[usize::from(byte & 15)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, value: &str) -> String {
        header_value(name, value).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn values_become_printable_and_can_be_decoded() {
        assert_eq!(text("sendoff-key", "50% grün\n"), "50%25 gr%C3%BCn%0A");
        assert_eq!(text("ce-subject", "a \"b\" 100%"), "a%20%22b%22%20100%25");
        assert_eq!(text("baggage", "a=1%202,b=x"), "a=1%202,b=x");
        assert_eq!(text("x-name", "Zoë 5%"), "Zo%C3%AB 5%25");
        assert_eq!(text("x-name", " a "), "%20a%20");
        assert_eq!(text("x-name", ""), "");
        assert_eq!(text("x-name", "a\r\nhost: evil"), "a%0D%0Ahost: evil");
    }

    #[test]
    fn headers_of_the_connection_are_ours() {
        for name in [
            "host",
            "content-length",
            "transfer-encoding",
            "webhook-id",
            "webhook-anything",
            "content-type",
        ] {
            assert!(is_ours(&HeaderName::from_static(name)), "{name}");
        }
        assert!(!is_ours(&HeaderName::from_static("authorization")));
    }
}
