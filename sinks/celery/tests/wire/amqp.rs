//! AMQP frames in the format of the captures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lapin::BasicProperties;
use lapin::protocol::{AMQPClass, basic, exchange, parse_class, queue};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use serde_json::{Map, Value, json};

use super::broker::Frame;

/// The methods that declare or publish.
pub(crate) fn commands(frames: &[Frame]) -> Vec<Value> {
    let mut commands: Vec<Value> = Vec::new();
    let mut body: Vec<u8> = Vec::new();
    for frame in frames {
        match frame {
            Frame::Method(payload) => commands.extend(method(payload)),
            Frame::Header(payload) => {
                body.clear();
                let publish = commands.last_mut().unwrap();
                publish["properties"] = properties(payload);
                publish["body_b64"] = json!("");
            }
            Frame::Body(part) => {
                body.extend(part);
                commands.last_mut().unwrap()["body_b64"] = json!(STANDARD.encode(&body));
            }
        }
    }
    commands
}

/// A method with its arguments, except methods of the connection.
pub(crate) fn method(payload: &[u8]) -> Option<Value> {
    let (rest, class) = parse_class(payload).unwrap();
    assert!(rest.is_empty());
    let (name, args) = match class {
        AMQPClass::Exchange(exchange::AMQPMethod::Declare(it)) => (
            "exchange.declare",
            json!({"exchange": it.exchange.as_str(), "type": it.kind.as_str(), "passive": it.passive,
                "durable": it.durable, "auto_delete": it.auto_delete, "internal": it.internal, "nowait": it.nowait,
                "arguments": table(&it.arguments)}),
        ),
        AMQPClass::Queue(queue::AMQPMethod::Declare(it)) => (
            "queue.declare",
            json!({"queue": it.queue.as_str(), "passive": it.passive, "durable": it.durable, "exclusive": it.exclusive,
                "auto_delete": it.auto_delete, "nowait": it.nowait, "arguments": table(&it.arguments)}),
        ),
        AMQPClass::Queue(queue::AMQPMethod::Bind(it)) => (
            "queue.bind",
            json!({"queue": it.queue.as_str(), "exchange": it.exchange.as_str(), "routing_key": it.routing_key.as_str(),
                "nowait": it.nowait, "arguments": table(&it.arguments)}),
        ),
        AMQPClass::Basic(basic::AMQPMethod::Publish(it)) => (
            "basic.publish",
            json!({"exchange": it.exchange.as_str(), "routing_key": it.routing_key.as_str(), "mandatory": it.mandatory,
                "immediate": it.immediate}),
        ),
        _ => return None,
    };
    Some(json!({"method": name, "args": args}))
}

/// The properties in a header frame: after the class, a zero, and the size of the body.
pub(crate) fn properties(payload: &[u8]) -> Value {
    assert_eq!(payload[..4], [0, 60, 0, 0]);
    let (rest, properties): (&[u8], BasicProperties) = basic::parse_properties(&payload[12..]).unwrap();
    assert!(rest.is_empty());
    let text = |value: &Option<ShortString>| value.as_ref().map(|text| json!(text.as_str()));
    let entries = [
        ("content_type", text(properties.content_type())),
        ("content_encoding", text(properties.content_encoding())),
        ("headers", properties.headers().as_ref().map(table)),
        ("delivery_mode", properties.delivery_mode().map(|mode| json!(mode))),
        ("priority", properties.priority().map(|priority| json!(priority))),
        ("correlation_id", text(properties.correlation_id())),
        ("reply_to", text(properties.reply_to())),
        ("expiration", text(properties.expiration())),
        ("message_id", text(properties.message_id())),
        ("timestamp", properties.timestamp().map(|at| json!(at))),
        ("type", text(properties.kind())),
        ("user_id", text(properties.user_id())),
        ("app_id", text(properties.app_id())),
    ];
    let set = entries
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    set.collect::<Map<_, _>>().into()
}

fn table(table: &FieldTable) -> Value {
    let entries = table.inner().iter();
    let entries = entries.map(|(name, value)| (name.as_str().to_owned(), field(value)));
    entries.collect::<Map<_, _>>().into()
}

fn field(value: &AMQPValue) -> Value {
    let written = match value {
        AMQPValue::Void => Value::Null,
        AMQPValue::Boolean(value) => json!(value),
        AMQPValue::LongInt(number) => json!(number),
        AMQPValue::LongLongInt(number) => json!(number),
        AMQPValue::Double(number) => json!(number),
        AMQPValue::LongString(text) => crate::capture::shown(text.as_bytes()),
        AMQPValue::FieldArray(items) => items.as_slice().iter().map(field).collect(),
        AMQPValue::FieldTable(entries) => table(entries),
        other => panic!("Celery sends no {other:?}"),
    };
    json!({"t": value.get_type().get_id().to_string(), "v": written})
}
