//! Checks of a message before it is written.

use crate::{Error, ErrorKind, Headers, Message, Result};

/// The longest topic, key, idempotency key, content type or aggregate name, in bytes.
const LONGEST_NAME: usize = 1024;

/// The largest number of headers, and the most bytes of headers as JSON, that every database accepts.
const MOST_HEADERS: usize = 256;
const HEADER_BYTES: usize = 64 << 10;

/// Checks a message without changing it.
pub(super) fn validate(message: &Message, max_payload_bytes: usize) -> Result<()> {
    name("topic", Some(&message.topic))?;
    name("key", message.key.as_deref())?;
    name("idempotency key", message.idempotency_key.as_deref())?;
    name("content type", message.content_type.as_deref())?;
    name("aggregate type", message.aggregate_type.as_deref())?;
    name("aggregate id", message.aggregate_id.as_deref())?;
    for (header, value) in &message.headers {
        name("header name", Some(header))?;
        if value.contains('\0') {
            return Err(nul(&format!("value of the header {header:?}")));
        }
    }
    headers(&message.headers)?;
    if message.payload.len() > max_payload_bytes {
        return Err(Error::new(
            ErrorKind::Invalid,
            format!("the payload of {:?} is too large", message.topic),
        )
        .because(format!(
            "the payload has {} bytes and the limit is {max_payload_bytes}",
            message.payload.len()
        ))
        .next_step("store the data elsewhere and send a reference, or raise max_payload_bytes"));
    }
    if message.max_attempts == Some(0) || message.max_attempts.is_some_and(|limit| i16::try_from(limit).is_err()) {
        return Err(Error::new(ErrorKind::Invalid, "max_attempts is out of range").next_step("use 1 to 32767"));
    }
    Ok(())
}

fn headers(headers: &Headers) -> Result<()> {
    if headers.len() > MOST_HEADERS {
        let has = headers.len();
        return Err(Error::new(ErrorKind::Invalid, "the message has too many headers")
            .because(format!("the message has {has} headers and the limit is {MOST_HEADERS}"))
            .next_step("put some of the values into the payload"));
    }
    // 8 bytes per header for quotes, colon, comma and spaces; escapes are not counted here, the database checks them.
    let bytes: usize = headers
        .iter()
        .map(|(header, value)| header.len() + value.len() + 8)
        .sum();
    if bytes > HEADER_BYTES {
        return Err(Error::new(ErrorKind::Invalid, "the headers are too large")
            .because(format!(
                "the headers need about {bytes} bytes as JSON and the limit is {HEADER_BYTES}"
            ))
            .next_step("put large values into the payload"));
    }
    Ok(())
}

fn name(what: &str, text: Option<&str>) -> Result<()> {
    let Some(text) = text else { return Ok(()) };
    if text.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, format!("the {what} is empty")).next_step("give it a value"));
    }
    if text.len() > LONGEST_NAME {
        return Err(Error::new(ErrorKind::Invalid, format!("the {what} is too long"))
            .because(format!(
                "the text has {} bytes and the limit is {LONGEST_NAME}",
                text.len()
            ))
            .next_step("use a shorter text, or a hash of the text"));
    }
    if text.contains('\0') {
        return Err(nul(what));
    }
    Ok(())
}

fn nul(what: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("the {what} contains a NUL character"))
        .because("databases cannot store NUL in text")
        .next_step("put binary data into the payload")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_limit_is_exact() {
        let at = |len: usize| validate(&Message::bytes("t", "x/y", vec![0; len]), 10);
        assert!(at(10).is_ok());
        assert!(at(11).unwrap_err().to_string().contains("the limit is 10"));
    }

    #[test]
    fn text_that_no_database_takes_is_refused_with_its_name() {
        for bad in [
            Message::bytes("", "x/y", vec![]),
            Message::bytes("a\0", "x/y", vec![]),
            Message::bytes("t", "x/y", vec![]).key(""),
            Message::bytes("t", "x/y", vec![]).key("k".repeat(1025)),
            Message::bytes("t", "x/y", vec![]).header("a", "\0"),
            Message::bytes("t", "x/y", vec![]).max_attempts(0),
            Message::bytes("t", "x/y", vec![]).header("a", "v".repeat(65_536)),
            (0..257).fold(Message::bytes("t", "x/y", vec![]), |message, n| {
                message.header(n.to_string(), "")
            }),
        ] {
            assert_eq!(validate(&bad, 10).unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
}
