//! `sendoff emit`: emits a message in its own transaction.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sendoff::{Error, ErrorKind, Message, Result};
use serde_json::json;

use crate::config::parse_duration;
use crate::exit::{Done, Exit};
use crate::session::Session;
use crate::store::Store;

/// Messages per transaction with `--count`.
const AT_ONCE: u32 = 500;

/// Emit a message in its own transaction and print its id
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Topic of the message
    topic: String,
    /// Payload of the message [default: standard input]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    payload: Option<String>,
    /// Read the payload from this file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    payload_file: Option<PathBuf>,
    /// Ordering key: messages with the same key are delivered in order
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Header of the message; can be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Emit only if no message of this topic has used this key within the deduplication window
    #[arg(long, value_name = "KEY", conflicts_with = "count")]
    idempotency_key: Option<String>,
    /// Content type of the payload [default: JSON if it is JSON, else text or bytes]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Type of the aggregate; the ordering key is TYPE:ID unless --key is set
    #[arg(long, value_name = "TYPE", requires = "aggregate_id")]
    aggregate_type: Option<String>,
    /// Id of the aggregate
    #[arg(long, value_name = "ID", requires = "aggregate_type")]
    aggregate_id: Option<String>,
    /// Deliver after this delay: 10s, 5m, 1h30m, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "at")]
    delay: Option<Duration>,
    /// Deliver at or after this time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    at: Option<SystemTime>,
    /// Make it a dead letter unless it is delivered by this time: 2026-01-31T12:00:00Z, or 1h from now
    #[arg(long, value_name = "TIME", value_parser = expiry)]
    expires: Option<Expiry>,
    /// Maximum number of attempts per sink, instead of the topic's limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    max_attempts: Option<u16>,
    /// Priority: above 0 before other messages, below 0 after them; order within a key is kept
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i16>,
    /// For load tests: emit this many messages that differ only in their ids, and print their number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
}

/// When it expires.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expiry {
    At(SystemTime),
    /// From now, by the database's clock.
    In(Duration),
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let payload = payload(&args, session)?;
    let store = session.ready_store().await?;
    let expires = match args.expires {
        None => None,
        Some(Expiry::At(at)) => Some(at),
        Some(Expiry::In(time)) => store.operate.now().await?.checked_add(time),
    };
    match args.count {
        None => one(&store, message(&args, expires, payload), session).await,
        Some(count) => {
            load(&store, || message(&args, expires, payload.clone()), count, session).await?;
            if session.output.json {
                session.output.json(&json!({"emitted": count}))?;
            } else {
                session.output.line(&format!("{count} emitted"))?;
            }
            Ok(Exit::Ok)
        }
    }
}

async fn one(store: &Store, message: Message, session: &Session) -> Done {
    let mut transaction = store.emit.begin().await?;
    let emitted = transaction.emit(&[message]).await?;
    transaction.commit().await?;
    for emitted in emitted {
        let (id, duplicate) = (emitted.id(), emitted.is_duplicate());
        if session.output.json {
            session.output.json(&json!({"id": id, "duplicate": duplicate}))?;
        } else {
            session.output.line(&id.to_string())?;
            if duplicate {
                session.note("duplicate: nothing was emitted; this is the id of the first message with that key");
            }
        }
    }
    Ok(Exit::Ok)
}

async fn load(store: &Store, message: impl Fn() -> Message, count: u32, session: &Session) -> Result<()> {
    let mut left = count;
    while left > 0 {
        let batch: Vec<Message> = (0..left.min(AT_ONCE)).map(|_| message()).collect();
        let mut transaction = store.emit.begin().await?;
        transaction.emit(&batch).await?;
        transaction.commit().await.inspect_err(|_| {
            session.note(&format!("{} messages were emitted before this error", count - left));
        })?;
        left -= left.min(AT_ONCE);
    }
    Ok(())
}

fn message(args: &Args, expires: Option<SystemTime>, payload: Vec<u8>) -> Message {
    let content_type = args.content_type.as_deref().unwrap_or_else(|| guessed(&payload));
    let mut message = Message::bytes(&args.topic, content_type, payload);
    if let Some((kind, id)) = args.aggregate_type.as_ref().zip(args.aggregate_id.as_ref()) {
        message = message.aggregate(kind, id).key(format!("{kind}:{id}"));
    }
    if let Some(key) = &args.key {
        message = message.key(key);
    }
    for (name, value) in &args.headers {
        message = message.header(name, value);
    }
    if let Some(key) = &args.idempotency_key {
        message = message.idempotency_key(key);
    }
    if let Some(delay) = args.delay {
        message = message.delay(delay);
    }
    if let Some(at) = args.at {
        message = message.available_at(at);
    }
    if let Some(at) = expires {
        message = message.expires_at(at);
    }
    if let Some(attempts) = args.max_attempts {
        message = message.max_attempts(attempts);
    }
    message.priority(args.priority.unwrap_or_default())
}

/// The content type of a payload that has none. Labelling other bytes as JSON would fail later, at a consumer.
fn guessed(payload: &[u8]) -> &'static str {
    if serde_json::from_slice::<serde::de::IgnoredAny>(payload).is_ok() {
        sendoff::message::JSON
    } else if std::str::from_utf8(payload).is_ok() {
        "text/plain; charset=utf-8"
    } else {
        "application/octet-stream"
    }
}

fn payload(args: &Args, session: &Session) -> Result<Vec<u8>> {
    let file = match (&args.payload, &args.payload_file) {
        (Some(text), _) => return Ok(text.clone().into_bytes()),
        (None, Some(path)) if path != Path::new("-") => {
            return std::fs::read(path).map_err(|error| unreadable(&path.display().to_string(), error));
        }
        (None, _) => io::stdin(),
    };
    if file.is_terminal() {
        session.note("type the payload, then press Ctrl-D");
    }
    let mut payload = Vec::new();
    file.lock()
        .read_to_end(&mut payload)
        .map_err(|error| unreadable("standard input", error))?;
    Ok(payload)
}

fn unreadable(name: &str, error: io::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("cannot read the payload from {name}"))
        .because(error.to_string())
        .next_step("use --payload TEXT or --payload-file FILE")
        .with_source(error)
}

fn point_in_time(text: &str) -> Result<SystemTime, String> {
    let time: jiff::Timestamp = text
        .parse()
        .map_err(|_| "write it like 2026-01-31T12:00:00Z".to_owned())?;
    Ok(time.into())
}

fn expiry(text: &str) -> Result<Expiry, String> {
    point_in_time(text)
        .map(Expiry::At)
        .or_else(|_| parse_duration(text).map(Expiry::In))
        .map_err(|_| "write it like 2026-01-31T12:00:00Z or 1h".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it like tenant=acme".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_as_people_write_them() {
        for (text, millis) in [
            ("250ms", 250),
            ("10s", 10_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "10", "-5s", "1 month", "soon"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_payload_is_called_what_it_is() {
        assert_eq!(guessed(b"{\"a\": 1}"), "application/json");
        assert_eq!(guessed(b"hello"), "text/plain; charset=utf-8");
        assert_eq!(guessed(b""), "text/plain; charset=utf-8");
        assert_eq!(guessed(&[0xff, 0]), "application/octet-stream");
    }

    #[test]
    fn a_message_expires_at_a_time_or_after_one() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
        assert_eq!(expiry("1970-01-01T00:01:00Z"), Ok(Expiry::At(at)));
        assert_eq!(expiry("1m"), Ok(Expiry::In(Duration::from_secs(60))));
        assert!(expiry("soon").is_err() && point_in_time("1m").is_err());
    }

    #[test]
    fn a_header_has_a_name_and_a_value() {
        assert_eq!(header("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(header("=b").is_err() && header("a").is_err());
    }
}
