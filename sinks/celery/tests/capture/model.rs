//! This crate's output in the format of the captures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Uuid;
use sendoff_sink_celery::amqp::{AmqpPublish, Declaration, Field, Table};
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::redis::{RedisPublish, RedisTarget};
use sendoff_sink_celery::{CeleryMessage, Encoder};
use serde_json::{Value, json};

use super::shown;

/// The commands for RabbitMQ, in the format of the captures.
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
            "method": "basic.publish", "properties": written,
            "args": {"exchange": publish.exchange, "routing_key": publish.routing_key},
            "body_b64": STANDARD.encode(&publish.body),
        }));
    }
    commands
}

fn declaration(declaration: &Declaration) -> [Value; 3] {
    assert!(!declaration.passive);
    let command = |method: &str, args: Value| json!({"method": method, "args": args});
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
        Field::Text(bytes) => shown(bytes),
        Field::Array(items) => items.iter().map(field).collect(),
        Field::Table(entries) => table(entries),
    };
    json!({"t": value.letter().to_string(), "v": written})
}

/// The commands for Redis, in the format of the captures; every message uses the next of `tags`.
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
