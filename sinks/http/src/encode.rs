//! Builds the headers and the body of a request from a message.

use std::borrow::Cow;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use sendoff::{Error, ErrorKind, Outcome, Outgoing, Result};
use sendoff_wire::escape::{Encodings, percent};
use sendoff_wire::{BodyTemplate, Format, Names};

use crate::header::Filling;
use crate::{HttpConfig, error};

/// The prefix of CloudEvents attributes in binary mode.
const NAMES: Names = Names { prefix: "ce-" };

/// Headers that neither a message nor a setting can set: those that frame a request on its connection, and those that
/// describe its body. With them a message could imitate another one, or split a request in two.
const FRAMING: [&str; 16] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Headers that a setting can set, and a message cannot: they identify the sink. A message with its own login would
/// replace the login of the sink, be refused, and look like a refusal of all messages.
const LOGIN: [&str; 5] = ["authorization", "cookie", "cookie2", "set-cookie", "www-authenticate"];

/// The most headers of a request. The type that holds them has room for 24,576, and panics at more.
const MOST_HEADERS: usize = 20_000;

/// An encoded message, not signed yet.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Whether only the sink itself sets this header.
pub(crate) fn is_ours(name: &HeaderName) -> bool {
    FRAMING.contains(&name.as_str()) || name.as_str().starts_with("webhook-") || Encodings::is_own(name.as_str())
}

/// Whether a message may set this header. Other headers of the message are left out; the rest of the message is sent.
fn is_of_messages(name: &HeaderName) -> bool {
    !is_ours(name) && !LOGIN.contains(&name.as_str())
}

/// Encodes messages by the settings.
pub(crate) struct Encoder {
    format: Format,
    source: String,
    /// They replace headers of the message with the same name.
    headers: Vec<(HeaderName, Filling)>,
    /// The body template with its content type, instead of a format.
    body: Option<(BodyTemplate, HeaderValue)>,
    limit: Option<usize>,
    header_limit: usize,
}

impl Encoder {
    /// Parses the templates and reads the secrets.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when one of them cannot be used.
    pub(crate) fn new(config: &HttpConfig) -> Result<Self> {
        let header = |(name, value): (&String, &crate::HeaderTemplate)| {
            let filling = value.open(name)?;
            let name = HeaderName::try_from(name).map_err(|_| unusable(&format!("the header {name}")))?;
            Ok((name, filling))
        };
        let body = match &config.body {
            Some(text) => {
                let content_type = config.content_type();
                let body = BodyTemplate::new(&text.reveal()?, content_type)?;
                let value = HeaderValue::try_from(content_type).map_err(|_| unusable("content_type"))?;
                Some((body, value))
            }
            None => None,
        };
        Ok(Self {
            format: config.format,
            source: config.source.clone(),
            headers: config.headers.iter().map(header).collect::<Result<_>>()?,
            body,
            limit: config.max_message_bytes,
            header_limit: config.max_header_bytes,
        })
    }

    /// Encodes a message. The error is the message's outcome.
    pub(crate) fn encode(&self, outgoing: &Outgoing) -> Result<Encoded, Outcome> {
        let never = |why: String| Outcome::Permanent(why.into());
        let encoded = self.format.encode(outgoing, &self.source, NAMES);
        if encoded.headers.len() > MOST_HEADERS {
            return Err(error::too_many_headers(encoded.headers.len(), MOST_HEADERS));
        }
        let mut headers = HeaderMap::with_capacity(encoded.headers.len() + self.headers.len() + 4);
        let mut encodings = Encodings::default();
        for (name, value) in &encoded.headers {
            let safe = encodings.name(name, is_token);
            // Encoded names are invalid only if they are empty or too long.
            let name = HeaderName::try_from(safe.as_ref()).map_err(|_| {
                never(
                    "a header of the message has a name that HTTP does not allow: empty, or too long (emit the \
                       message with another name)"
                        .to_owned(),
                )
            })?;
            if is_of_messages(&name) && !self.headers.iter().any(|(own, _)| *own == name) {
                let value = safe_value(&name, value, &mut encodings).map_err(never)?;
                headers.insert(name, value);
            }
        }
        for (name, filling) in &self.headers {
            let value = filling.value(name, outgoing, &mut encodings).map_err(never)?;
            headers.insert(name, value);
        }
        let (body, content_type) = match &self.body {
            Some((body, content_type)) => {
                let body = body.fill(outgoing).map_err(Outcome::Permanent)?;
                (body.into(), content_type.clone())
            }
            None => {
                let content_type = safe_value(&CONTENT_TYPE, &encoded.content_type, &mut encodings);
                (encoded.body, content_type.map_err(never)?)
            }
        };
        headers.insert(CONTENT_TYPE, content_type);
        for (name, value) in encodings.headers() {
            let value = HeaderValue::try_from(value).map_err(|_| never(unfit(name)))?;
            headers.insert(name, value);
        }
        self.check_size(&headers)?;
        match self.limit {
            Some(limit) if body.len() > limit => Err(error::too_large(body.len(), limit)),
            Some(_) | None => Ok(Encoded { headers, body }),
        }
    }

    /// Endpoints refuse headers that are too large, or close the connection with the requests of other messages on it.
    fn check_size(&self, headers: &HeaderMap) -> Result<(), Outcome> {
        // The size in HTTP/1.1, with a colon, a space and a line break.
        let size = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
        let bytes: usize = headers.iter().map(size).sum();
        if bytes > self.header_limit {
            return Err(error::headers_too_large(bytes, self.header_limit));
        }
        Ok(())
    }
}

fn unusable(what: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("{what} of the HTTP sink is invalid"))
        .because("it is not a valid HTTP header value")
        .next_step("use printable ASCII")
}

fn unfit(name: &str) -> String {
    format!("the value of the message's header {name} is not valid in HTTP (emit the message with another value)")
}

/// Whether a character is allowed in a header name.
fn is_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter)
}

/// Makes a value printable ASCII: others are percent-encoded and listed in a header. Attributes of CloudEvents are
/// encoded as their HTTP binding says; every consumer decodes that, so they are not listed.
pub(crate) fn safe_value(name: &HeaderName, value: &str, encodings: &mut Encodings) -> Result<HeaderValue, String> {
    let safe = if name.as_str().starts_with(NAMES.prefix) {
        attribute(value)
    } else {
        encodings.value(name.as_str(), value, |letter| matches!(letter, ' '..='~'))
    };
    HeaderValue::try_from(safe.as_ref()).map_err(|_| unfit(name.as_str()))
}

fn attribute(value: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(value.len() + 8);
    for letter in value.chars() {
        match letter {
            '!'..='~' if letter != '%' && letter != '"' => out.push(letter),
            _ => percent(letter, &mut out),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &'static str, value: &str) -> (String, String) {
        let mut encodings = Encodings::default();
        let value = safe_value(&HeaderName::from_static(name), value, &mut encodings).unwrap();
        let told = encodings.headers().map(|(_, names)| names).collect();
        (value.to_str().unwrap().to_owned(), told)
    }

    #[test]
    fn values_become_printable_and_it_is_told_which() {
        for (name, value, sent, told) in [
            ("sendoff-key", "50% grün\n", "50%25%20gr%C3%BCn%0A", "sendoff-key"),
            ("sendoff-key", "50%", "50%", ""),
            ("ce-subject", "a \"b\" 100% ü", "a%20%22b%22%20100%25%20%C3%BC", ""),
            ("baggage", "a=1%202,b=x", "a=1%202,b=x", ""),
            ("x-name", "Zoë 5%", "Zo%C3%AB%205%25", "x-name"),
            ("x-name", " a ", "%20a%20", "x-name"),
            ("x-name", "", "", ""),
            ("x-name", "a\r\nhost: evil", "a%0D%0Ahost:%20evil", "x-name"),
        ] {
            assert_eq!(
                text(name, value),
                (sent.to_owned(), told.to_owned()),
                "{name}: {value:?}"
            );
        }
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
            "sendoff-encoded",
        ] {
            assert!(is_ours(&HeaderName::from_static(name)), "{name}");
        }
        assert!(!is_ours(&HeaderName::from_static("authorization")));
    }
}
