//! The JSON text of a list's element.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use crate::encode::CeleryMessage;
use crate::python::{Text, Value, write_json};

/// The envelope. Workers need `delivery_tag` and `delivery_info`. The tag must be new for every copy, because a worker
/// stores unfinished tasks under it.
pub(super) fn envelope(message: &CeleryMessage, delivery_tag: Uuid) -> String {
    let (properties, destination) = (&message.properties, &message.destination);
    let mut entries: Vec<(Text, Value)> = Vec::new();
    let mut set = |name: &str, value: Value| Value::set(&mut entries, name.into(), value);
    set("correlation_id", Value::Text(properties.correlation_id.clone()));
    if let Some(reply_to) = &properties.reply_to {
        set("reply_to", Value::Text(reply_to.clone()));
    }
    for (name, value) in &properties.extra {
        // Properties that workers need cannot be replaced.
        if let Some(name) = name.as_str().filter(|name| !OWN.contains(name)) {
            set(name, value.clone());
        }
    }
    set("delivery_mode", i64::from(properties.delivery_mode).into());
    if let Some(millis) = properties.expiration {
        set("expiration", millis.to_string().as_str().into());
    }
    let info = [
        ("exchange", destination.exchange.as_str()),
        ("routing_key", destination.routing_key.as_str()),
    ];
    set(
        "delivery_info",
        Value::Map(info.map(|(name, value)| (name.into(), value.into())).into()),
    );
    set("priority", i64::from(properties.priority).into());
    set("body_encoding", "base64".into());
    set("delivery_tag", delivery_tag.to_string().as_str().into());
    let envelope = [
        ("body", STANDARD.encode(&message.body).as_str().into()),
        ("content-encoding", properties.content_encoding.into()),
        ("content-type", properties.content_type.into()),
        ("headers", Value::Map(message.headers.clone())),
        ("properties", Value::Map(entries)),
    ];
    write_json(&Value::Map(envelope.map(|(name, value)| (name.into(), value)).into()))
}

const OWN: &[&str] = &[
    "body_encoding",
    "correlation_id",
    "delivery_info",
    "delivery_mode",
    "delivery_tag",
    "expiration",
    "priority",
];
