//! The captures, and helpers to compare them.
#![allow(dead_code, reason = "not every test uses all of it")]

pub(crate) mod calls;
pub(crate) mod model;
pub(crate) mod rows;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use sendoff::store::{RowRef, Table};
use sendoff::{Headers, Message, Outgoing, Uuid};
use sendoff_sink_celery::{CeleryMessage, Encoder, TaskCall};
use serde_json::Value;

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

/// The methods of a capture that declare or publish, without the number of the channel and without the mandatory flag,
/// which Celery does not set.
pub(crate) fn amqp_commands(capture: &Value) -> Vec<Value> {
    let wanted = ["exchange.declare", "queue.declare", "queue.bind", "basic.publish"];
    let commands = capture["amqp_commands"].as_array().unwrap().iter();
    let wanted = commands.filter(|command| wanted.contains(&command["method"].as_str().unwrap()));
    let mut commands: Vec<Value> = wanted.cloned().collect();
    for command in &mut commands {
        let command = command.as_object_mut().unwrap();
        command.remove("channel");
        command.remove("header_frame_payload_hex");
        command.remove("publish_frame_payload_hex");
        if command["method"] == "basic.publish" {
            let args = command["args"].as_object_mut().unwrap();
            assert_eq!(
                (args.remove("mandatory"), args.remove("immediate")),
                (Some(false.into()), Some(false.into()))
            );
        }
    }
    commands
}

/// A message as a relay reads it.
pub(crate) fn outgoing(message: &Message, created_at: Timestamp) -> Outgoing {
    Outgoing {
        id: message.id(),
        topic: message.topic().to_owned(),
        payload: message.payload().clone(),
        content_type: Some(sendoff_celery::CONTENT_TYPE.to_owned()),
        headers: message.headers_ref().clone(),
        created_at: SystemTime::from(created_at),
        ..Outgoing::blank(RowRef {
            table: Table::Ready,
            lane: 0,
            seq: 1,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        })
    }
}

/// A message with this stored task.
pub(crate) fn stored(id: Uuid, task: &str, payload: String, headers: Headers) -> Message {
    Message::bytes(task, sendoff_celery::CONTENT_TYPE, payload)
        .with_id(id)
        .headers(headers)
}

pub(crate) fn encode(encoder: &Encoder, message: &Message, created_at: Timestamp, now: Timestamp) -> CeleryMessage {
    let call = TaskCall::from_delivery(&outgoing(message, created_at)).unwrap();
    encoder.encode(&call, now).unwrap()
}

/// A readable body: decompressed, and as text if it is UTF-8.
pub(crate) fn readable(body_b64: &str) -> String {
    let bytes = STANDARD.decode(body_b64).unwrap();
    let mut inflated = Vec::new();
    let plain = match flate2::read::ZlibDecoder::new(&*bytes).read_to_end(&mut inflated) {
        Ok(_) => inflated,
        Err(_) => bytes,
    };
    String::from_utf8(plain).unwrap()
}

/// Removes the entry `reply_to`, the reply queue of one Python process, from the options of signatures.
pub(crate) fn without_reply_to(body: &str) -> String {
    let mut rest = body;
    let mut kept = String::new();
    while let Some(at) = rest.find(", \"reply_to\": \"") {
        kept.push_str(&rest[..at]);
        rest = &rest[at + ", \"reply_to\": \"".len() + 36 + 1..];
    }
    kept + rest
}

/// Replaces every UUID by the number of its first occurrence: the ids differ, but the same ones are equal.
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

/// The captured relay printed the arguments as a list, because it had parsed them as one; here they are a tuple.
pub(crate) fn as_tuple(argsrepr: &str) -> String {
    let Some(inner) = argsrepr.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return argsrepr.to_owned();
    };
    let one = !inner.is_empty() && (!inner.contains(',') || inner == "{'1': 'a', 'null': 'b'}");
    format!("({inner}{})", if one { "," } else { "" })
}

/// A parsed envelope, without the reply queue, and with the arguments printed as a tuple.
pub(crate) fn comparable_envelope(envelope: &str) -> Value {
    let mut envelope: Value = serde_json::from_str(envelope).unwrap();
    envelope["body"] = readable(envelope["body"].as_str().unwrap()).into();
    envelope["properties"].as_object_mut().unwrap().remove("reply_to");
    let argsrepr = &mut envelope["headers"]["argsrepr"];
    *argsrepr = as_tuple(argsrepr.as_str().unwrap()).into();
    envelope
}

/// Text as in the captures: lone surrogates by their bytes.
pub(crate) fn shown(bytes: &[u8]) -> Value {
    let shown = |byte: &u8| match byte {
        0..0x80 => vec![*byte],
        _ => format!("\\x{byte:02x}").into_bytes(),
    };
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    text.unwrap_or_else(|_| String::from_utf8(bytes.iter().flat_map(shown).collect()).unwrap())
        .into()
}
