//! The bytes on the wire: AMQP frames with the types in their tables, and Redis commands byte by byte.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap fails the test"
)]

mod capture;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use capture::calls::{self, call, is_left_out};
use capture::rows::{self, Rows};
use capture::{captures, comparable_envelope, encode, model, outgoing};
use jiff::Timestamp;
use redis::Cmd;
use sendoff::{Message, Outcome, Sink as _, Uuid};
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::{CeleryConfig, CelerySink, Encoder};
use sendoff_testkit::servers::Redis;
use serde_json::{Value, json};
use wire::broker::YesBroker;
use wire::tap::Tap;

fn parsed(folder: &str, broker: &str) -> Vec<(String, String, Value)> {
    let captures = captures(folder)
        .into_iter()
        .filter(|(name, _)| name.starts_with(broker));
    captures
        .map(|(name, text)| {
            let capture = serde_json::from_str(&text).unwrap();
            (name, text, capture)
        })
        .collect()
}

#[test]
fn the_captured_frames_say_what_their_captures_say() {
    let mut compared = 0;
    for (name, _, capture) in [parsed("native", "amqp"), parsed("outbox", "amqp")].concat() {
        let commands = capture["amqp_commands"].as_array().unwrap();
        for command in commands.iter().filter(|each| each["method"] == "basic.publish") {
            let bytes = |name: &str| hex(command[name].as_str().unwrap());
            let publish = wire::amqp::method(&bytes("publish_frame_payload_hex")).unwrap();
            assert_eq!(publish["args"], command["args"], "{name}");
            let properties = wire::amqp::properties(&bytes("header_frame_payload_hex"));
            assert_eq!(properties, command["properties"], "{name}");
            compared += 1;
        }
    }
    assert_eq!(compared, 113, "number of compared messages");
}

fn hex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

/// All captured calls and rows, with the settings of their sender.
fn everything() -> Vec<(String, CeleryConfig, Vec<Message>)> {
    let mut everything = Vec::new();
    for (name, _, capture) in parsed("native", "amqp") {
        let (vector, variant) = (capture["vector"].as_str().unwrap(), capture["variant"].as_str());
        if !is_left_out(vector) {
            everything.push((name, calls::config("x", variant), call(vector)));
        }
    }
    for (name, text, _) in parsed("outbox", "amqp") {
        let rows: Rows = serde_json::from_str(&text).unwrap();
        let messages = rows.outbox_rows.iter().map(rows::Row::message).collect();
        everything.push((name, rows::config(rows.variant.as_deref(), "x"), messages));
    }
    everything
}

/// `native.rs` and `outbox.rs` compare the encoded messages with the captures field by field.
#[tokio::test]
async fn rabbitmq_is_sent_what_was_encoded_type_by_type_and_asked_for_what_no_queue_takes() {
    let broker = YesBroker::start().await;
    let mut compared = 0;
    for (name, mut config, messages) in everything() {
        config.url = Some(sendoff_wire::Address::parse(&broker.url()).unwrap());
        config.declare = Declare::Active;
        let encoder = Encoder::new(&config).unwrap();
        let (actual, expected) = loop {
            // A sink of its own: one that has declared its queues does not declare them again.
            let sink = CelerySink::new(&config).unwrap();
            let now = Timestamp::now();
            let batch: Vec<_> = messages.iter().map(|each| Arc::new(outgoing(each, now))).collect();
            let outcomes = sink.publish(&batch).await;
            assert!(
                outcomes.iter().all(|each| *each == Outcome::Delivered),
                "{name}: {outcomes:?}"
            );
            let actual = wire::amqp::commands(&broker.take());
            sink.close().await;
            broker.take();
            let encoded: Vec<_> = messages.iter().map(|each| encode(&encoder, each, now, now)).collect();
            // The routing key contains the seconds that a task waits in RabbitMQ.
            if now.as_second() == Timestamp::now().as_second() || config.default_queue != "qcelery" {
                break (actual, model::amqp_commands(&encoded));
            }
        };
        assert_eq!(
            comparable(&name, actual, true),
            comparable(&name, expected, false),
            "{name}"
        );
        compared += 1;
    }
    assert_eq!(compared, 57 + 49, "number of compared captures");
}

/// Without times, and with the letters of the wire.
fn comparable(name: &str, mut commands: Vec<Value>, sent: bool) -> String {
    for command in commands.iter_mut().filter(|each| each["method"] == "basic.publish") {
        if sent {
            let args = command["args"].as_object_mut().unwrap();
            assert_eq!(args.remove("mandatory"), Some(json!(true)), "{name}");
            assert_eq!(args.remove("immediate"), Some(json!(false)), "{name}");
        }
        if let Some(expiration) = command["properties"].get_mut("expiration") {
            assert!(expiration.as_str().unwrap().parse::<u32>().is_ok(), "{name}");
            *expiration = "in time".into();
        }
    }
    // Declarations come once and before any publish, in any order.
    let is_publish = |command: &Value| command["method"] == "basic.publish";
    let from = commands.iter().position(is_publish).unwrap();
    if sent {
        assert!(commands[from..].iter().all(is_publish), "{name}");
    }
    let (publishes, mut declared): (Vec<Value>, Vec<Value>) = commands.into_iter().partition(is_publish);
    declared.sort_by_key(Value::to_string);
    declared.dedup();
    // RabbitMQ and its clients write 64-bit numbers with a small l.
    serde_json::to_string_pretty(&[declared, publishes].concat())
        .unwrap()
        .replace("\"t\": \"L\"", "\"t\": \"l\"")
}

/// Removes the tags: every copy has a new one, of the same length.
fn without_tags(bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let mark = "\"delivery_tag\": \"";
    let mut parts = text.split(mark);
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + mark + &Uuid::nil().to_string() + &part[36..])
}

#[tokio::test]
async fn redis_is_sent_a_batch_in_order_and_many_to_a_command() {
    let redis = Redis::start().await;
    let tap = Tap::start(redis.port()).await;
    let url = format!("redis://127.0.0.1:{}", tap.port);
    let mut config = rows::config(None, "x");
    config.url = Some(sendoff_wire::Address::parse(&url).unwrap());
    config.declare = Declare::Active;
    let (sink, encoder) = (CelerySink::new(&config).unwrap(), Encoder::new(&config).unwrap());
    let of = |text: &str| serde_json::from_str::<Rows>(text).unwrap().outbox_rows;
    let rows = parsed("outbox", "redis").into_iter().flat_map(|(_, text, _)| of(&text));
    let messages: Vec<Message> = rows.map(|row| row.message()).collect();
    // The remaining time until a task expires differs by milliseconds.
    let expires = |message: &Message| String::from_utf8_lossy(message.payload()).contains("\"expires\"");
    let messages: Vec<Message> = messages.into_iter().filter(|message| !expires(message)).collect();
    assert_eq!(messages.len(), 41);

    let now = Timestamp::now();
    let batch: Vec<_> = messages.iter().map(|each| Arc::new(outgoing(each, now))).collect();
    sink.check().await.unwrap();
    tap.take();
    let outcomes = sink.publish(&batch).await;
    // No queue is bound to the exchange of one of them.
    let refused = outcomes.iter().filter(|each| **each != Outcome::Delivered);
    assert_eq!(refused.count(), 1, "{outcomes:?}");

    let encoded: Vec<_> = messages.iter().map(|each| encode(&encoder, each, now, now)).collect();
    let commands = model::redis_commands(&encoder, &encoded, &[]);
    let expected: Vec<u8> = packed(commands).iter().flat_map(Cmd::get_packed_command).collect();
    assert_eq!(without_tags(&tap.take()), without_tags(&expected));
}

/// First the bindings, then the queries about exchanges, then the messages in order: consecutive messages for the same
/// list are one command.
fn packed(commands: Vec<Vec<String>>) -> Vec<Cmd> {
    let (mut bind, rest): (Vec<_>, Vec<_>) = commands.into_iter().partition(|each| each[0] == "SADD");
    bind.sort();
    let (ask, push): (Vec<_>, Vec<_>) = rest.into_iter().partition(|each| each[0] == "SMEMBERS");
    let mut pushes: Vec<Vec<String>> = Vec::new();
    for mut command in push {
        match pushes.last_mut().filter(|last| last[1] == command[1]) {
            Some(last) => last.push(command.remove(2)),
            None => pushes.push(command),
        }
    }
    let all = [bind, ask, pushes].concat();
    all.iter()
        .map(|command| redis::cmd(&command[0]).arg(&command[1..]).take())
        .collect()
}

#[tokio::test]
async fn redis_then_holds_what_the_captured_relay_left_there() {
    let redis = Redis::start().await;
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut compared = 0;
    for (name, text, capture) in parsed("outbox", "redis") {
        let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
        let rows: Rows = serde_json::from_str(&text).unwrap();
        let mut config = rows::config(rows.variant.as_deref(), "x");
        config.url = Some(sendoff_wire::Address::parse(&redis.url()).unwrap());
        config.declare = Declare::Active;
        let sink = CelerySink::new(&config).unwrap();
        let messages = rows
            .outbox_rows
            .iter()
            .map(|row| Arc::new(outgoing(&row.message(), Timestamp::now())));
        let outcomes = sink.publish(&messages.collect::<Vec<_>>()).await;
        let lost = name.starts_with("redis_exchange_routing_key");
        assert!(
            outcomes.iter().all(|each| (*each == Outcome::Delivered) != lost),
            "{name}: {outcomes:?}"
        );

        let mut actual: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        for key in keys {
            let mut get = redis::cmd(if key.starts_with("_kombu") {
                "SMEMBERS"
            } else {
                "LRANGE"
            });
            get.arg(&key);
            if !key.starts_with("_kombu") {
                get.arg(0).arg(-1);
            }
            actual.insert(key, get.query_async(&mut connection).await.unwrap());
        }
        let expected: BTreeMap<String, Vec<String>> = serde_json::from_value(capture["keys_after"].clone()).unwrap();
        assert_eq!(held(&actual, &rows.vector), held(&expected, &rows.vector), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 42, "number of compared captures");
}

/// The content of the keys, without the parts that differ for every sender: origin, tag, and times.
fn held(keys: &BTreeMap<String, Vec<String>>, vector: &str) -> Vec<Value> {
    let held = keys
        .iter()
        .flat_map(|(key, items)| items.iter().map(move |item| (key, item)));
    held.map(|(key, item)| {
        if key.starts_with("_kombu") {
            return json!([key, item]);
        }
        let mut envelope = comparable_envelope(item);
        let (headers, properties) = ("headers", "properties");
        let mut mask = |part: &str, name: &str| {
            if let Some(value) = envelope[part].get_mut(name).filter(|value| value.is_string()) {
                *value = "some".into();
            }
        };
        mask(headers, "origin");
        mask(headers, "expires");
        mask(properties, "expiration");
        mask(properties, "delivery_tag");
        if vector == "chain_of_group" {
            // The captured relay rewrites it: see outbox.rs.
            envelope["body"] = "some".into();
        }
        json!([key, envelope])
    })
    .collect()
}
