//! The captures, and what is compared.
#![allow(dead_code, reason = "every test file uses a part")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use sendoff::store::{Place, Room};
use sendoff::{Delivery, Headers, Message, Uuid};
use sendoff_sink_celery::amqp::{AmqpPublish, Declaration, Field, Table};
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::redis::{RedisPublish, RedisTarget};
use sendoff_sink_celery::{CeleryMessage, Encoder, TaskCall};
use serde_json::{Value, json};

/// All captures of a folder, by file name.
pub(crate) fn captures(folder: &str) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(folder);
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let captures: BTreeMap<String, String> = files
        .map(|file| {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&file).unwrap())
        })
        .collect();
    assert!(captures.len() > 40, "captures are missing in {}", folder.display());
    captures
}

/// A message of the outbox as a relay gets it.
pub(crate) fn delivery(message: &Message, created_at: Timestamp) -> Delivery {
    Delivery {
        id: message.id(),
        topic: message.topic().to_owned(),
        payload: message.payload().clone(),
        content_type: Some(sendoff::task::CONTENT_TYPE.to_owned()),
        headers: message.headers_ref().clone(),
        key: None,
        aggregate_type: None,
        aggregate_id: None,
        schema_version: None,
        idempotency_key: None,
        priority: 0,
        created_at: SystemTime::from(created_at),
        expires_at: None,
        attempts: 0,
        max_attempts: None,
        place: Place {
            room: Room::Ready,
            lane: 0,
            seq: 1,
            leg: None,
            spot: 0,
        },
    }
}

/// A message with a stored task that is written out.
pub(crate) fn stored(id: Uuid, task: &str, payload: String, headers: Headers) -> Message {
    Message::bytes(task, sendoff::task::CONTENT_TYPE, payload)
        .with_id(id)
        .headers(headers)
}

pub(crate) fn encode(encoder: &Encoder, message: &Message, created_at: Timestamp, now: Timestamp) -> CeleryMessage {
    let call = TaskCall::from_delivery(&delivery(message, created_at)).unwrap();
    encoder.encode(&call, now).unwrap()
}

/// What RabbitMQ gets, in the words of the captures.
pub(crate) fn amqp_commands(messages: &[CeleryMessage]) -> Vec<Value> {
    let mut commands: Vec<Value> = Vec::new();
    for message in messages {
        let publish = AmqpPublish::new(message.clone(), Declare::Active).unwrap();
        for command in publish.declaration.iter().flat_map(declaration) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        let properties = &publish.properties;
        let mut written = json!({
            "content_type": properties.content_type, "content_encoding": properties.content_encoding,
            "headers": table(&properties.headers), "delivery_mode": properties.delivery_mode,
            "priority": properties.priority, "correlation_id": properties.correlation_id,
        });
        for (name, value) in [
            ("reply_to", &properties.reply_to),
            ("expiration", &properties.expiration),
        ] {
            if let Some(value) = value {
                written[name] = json!(value);
            }
        }
        commands.push(json!({
            "channel": 1, "method": "basic.publish", "properties": written,
            "args": {"exchange": publish.exchange, "routing_key": publish.routing_key,
                "mandatory": false, "immediate": false},
            "body_b64": STANDARD.encode(&publish.body),
        }));
    }
    commands
}

fn declaration(declaration: &Declaration) -> [Value; 3] {
    assert!(!declaration.passive);
    let command = |method: &str, args: Value| json!({"channel": 1, "method": method, "args": args});
    [
        command(
            "exchange.declare",
            json!({"exchange": declaration.exchange, "type": declaration.exchange_type.as_str(), "passive": false,
                "durable": true, "auto_delete": false, "internal": false, "nowait": false, "arguments": {}}),
        ),
        command(
            "queue.declare",
            json!({"queue": declaration.queue, "passive": false, "durable": true, "exclusive": false,
                "auto_delete": false, "nowait": false, "arguments": table(&declaration.arguments)}),
        ),
        command(
            "queue.bind",
            json!({"queue": declaration.queue, "exchange": declaration.exchange,
                "routing_key": declaration.routing_key, "nowait": false, "arguments": {}}),
        ),
    ]
}

fn table(table: &Table) -> Value {
    table
        .iter()
        .map(|(name, value)| (name.clone(), field(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn field(value: &Field) -> Value {
    let written = match value {
        Field::Void => Value::Null,
        Field::Bool(value) => json!(value),
        Field::Int(number) => json!(number),
        Field::Long(number) => json!(number),
        Field::Double(number) => json!(number),
        Field::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            // The captures show half surrogate pairs by their bytes.
            Err(_) => json!(String::from_utf8(bytes.iter().flat_map(|b| shown(*b)).collect()).unwrap()),
        },
        Field::Array(items) => items.iter().map(field).collect(),
        Field::Table(entries) => table(entries),
    };
    json!({"t": value.letter().to_string(), "v": written})
}

fn shown(byte: u8) -> Vec<u8> {
    if byte < 0x80 {
        vec![byte]
    } else {
        format!("\\x{byte:02x}").into_bytes()
    }
}

/// What Redis gets, in the words of the captures; every message takes the next of `tags`.
pub(crate) fn redis_commands(encoder: &Encoder, messages: &[CeleryMessage], tags: &[Uuid]) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<String>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let tag = tags.get(at).copied().unwrap_or_default();
        let publish = RedisPublish::new(message, Declare::Active, &encoder.config().redis, tag);
        for binding in publish.bindings {
            let command = vec!["SADD".to_owned(), binding.key, binding.member];
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        commands.push(match publish.target {
            RedisTarget::List(key) => vec!["LPUSH".to_owned(), key, publish.envelope],
            RedisTarget::Exchange { table, .. } => vec!["SMEMBERS".to_owned(), table],
        });
    }
    commands
}

/// The bytes of a body, readable: decompressed, and as text where it is text.
pub(crate) fn readable(body_b64: &str) -> String {
    let bytes = STANDARD.decode(body_b64).unwrap();
    let mut inflated = Vec::new();
    let plain = match flate2::read::ZlibDecoder::new(&*bytes).read_to_end(&mut inflated) {
        Ok(_) => inflated,
        Err(_) => bytes,
    };
    String::from_utf8(plain).unwrap()
}

/// Takes the entry `reply_to` out of the options of signatures: the reply queue of one Python process.
pub(crate) fn without_reply_to(body: &str) -> String {
    let mut rest = body;
    let mut kept = String::new();
    while let Some(at) = rest.find(", \"reply_to\": \"") {
        kept.push_str(&rest[..at]);
        rest = &rest[at + ", \"reply_to\": \"".len() + 36 + 1..];
    }
    kept + rest
}

/// Names every UUID by the order of its first occurrence: the ids themselves differ, which of them are equal does not.
pub(crate) fn with_named_ids(text: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    let (mut named, mut at) = (String::new(), 0);
    while at < text.len() {
        match text.get(at..at + 36).filter(|id| Uuid::parse_str(id).is_ok()) {
            Some(id) => {
                let name = names.iter().position(|known| known == id).unwrap_or_else(|| {
                    names.push(id.to_owned());
                    names.len() - 1
                });
                named.push_str(&format!("<id {name}>"));
                at += 36;
            }
            None => {
                let character = text[at..].chars().next().unwrap();
                named.push(character);
                at += character.len_utf8();
            }
        }
    }
    named
}
