//! Compares every capture of Celery with this crate's output for the same call.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod capture;

use capture::calls::{call, config, is_left_out};
use capture::model::redis_commands;
use capture::{amqp_commands, captures, encode, model, readable, stored, with_named_ids, without_reply_to};
use jiff::{SignedDuration, Timestamp};
use sendoff::{Headers, Uuid};
use sendoff_sink_celery::{CeleryMessage, Encoder};
use serde_json::{Value, json};

/// When the captured call was made, if the message shows it.
fn called_at(vector: &str, headers: &Value, expiration: Option<&str>) -> Timestamp {
    let header = |name: &str| headers[name]["v"].as_str().or(headers[name].as_str());
    let before = |name: &str, time: SignedDuration| header(name).unwrap().parse::<Timestamp>().unwrap() - time;
    match vector {
        "countdown" => before("eta", SignedDuration::from_secs(3600)),
        _ => match (header("expires"), expiration) {
            (Some(_), Some(millis)) => before("expires", SignedDuration::from_millis(millis.parse().unwrap())),
            _ => "2026-11-15T19:00:00Z".parse().unwrap(),
        },
    }
}

fn encoder(origin: &str, variant: Option<&str>) -> Encoder {
    Encoder::new(&config(origin, variant)).unwrap()
}

/// The messages of a call, with the ids and the reply queue of the capture.
fn messages(vector: &str, encoder: &Encoder, ids: &[&str], reply_to: &str, at: Timestamp) -> Vec<CeleryMessage> {
    let calls = call(vector);
    assert_eq!(calls.len(), ids.len(), "{vector}: number of messages");
    let encoded = calls.into_iter().zip(ids).map(|(message, id)| {
        let message = message.with_id(Uuid::parse_str(id).unwrap());
        let mut encoded = encode(encoder, &message, at, at);
        encoded.properties.reply_to = Some(reply_to.into());
        encoded
    });
    encoded.collect()
}

/// Adapts what Celery prints and JSON cannot represent: that the arguments were a list, and keys of other types.
fn printed_from_json(vector: &str, argsrepr: &str) -> String {
    match vector {
        "args_kwargs" => format!("({})", &argsrepr[1..argsrepr.len() - 1]),
        "type_int_keys" => argsrepr.replace("1:", "'1':").replace("None:", "'null':"),
        _ => argsrepr.to_owned(),
    }
}

#[test]
fn rabbitmq_gets_what_celery_would_have_sent() {
    let mut compared = 0;
    for (name, text) in captures("native")
        .into_iter()
        .filter(|(name, _)| name.starts_with("amqp_"))
    {
        let capture: Value = serde_json::from_str(&text).unwrap();
        let vector = capture["vector"].as_str().unwrap();
        if is_left_out(vector) {
            continue;
        }
        let mut expected = amqp_commands(&capture);
        let published: Vec<Value> = expected
            .iter()
            .filter(|each| each["method"] == "basic.publish")
            .cloned()
            .collect();
        let properties = &published[0]["properties"];
        let headers = &properties["headers"];
        let at = called_at(vector, headers, properties["expiration"].as_str());
        let encoder = encoder(headers["origin"]["v"].as_str().unwrap(), capture["variant"].as_str());
        let ids: Vec<&str> = published
            .iter()
            .map(|each| each["properties"]["headers"]["id"]["v"].as_str().unwrap())
            .collect();
        let reply_to = properties["reply_to"].as_str().unwrap();
        let mut actual = model::amqp_commands(&messages(vector, &encoder, &ids, reply_to, at));

        for command in expected.iter_mut().filter(|each| each["method"] == "basic.publish") {
            let argsrepr = &mut command["properties"]["headers"]["argsrepr"]["v"];
            *argsrepr = printed_from_json(vector, argsrepr.as_str().unwrap()).into();
            // A missing priority means 0. Celery leaves it out for a queue that the caller names.
            if vector == "queue_name" {
                assert_eq!(
                    command["properties"]
                        .as_object_mut()
                        .unwrap()
                        .insert("priority".into(), json!(0)),
                    None
                );
            }
            // RabbitMQ would refuse this message, and Celery would not notice.
            if vector == "expires_datetime" {
                assert!(
                    command["properties"]["expiration"]
                        .as_str()
                        .unwrap()
                        .parse::<u64>()
                        .unwrap()
                        > 1 << 32
                );
                command["properties"].as_object_mut().unwrap().remove("expiration");
            }
        }
        for command in expected.iter_mut().chain(&mut actual) {
            if let Some(body) = command["body_b64"].as_str().map(readable) {
                command["body_b64"] = without_reply_to(&body).into();
            }
        }
        assert_eq!(
            with_named_ids(&serde_json::to_string_pretty(&actual).unwrap()),
            with_named_ids(&serde_json::to_string_pretty(&expected).unwrap()),
            "{name}"
        );
        compared += 1;
    }
    assert_eq!(compared, 57, "number of compared captures");
}

#[test]
fn redis_gets_the_bytes_that_celery_would_have_sent() {
    let mut compared = 0;
    for (name, text) in captures("native")
        .into_iter()
        .filter(|(name, _)| name.starts_with("redis_"))
    {
        let capture: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        let vector = capture["vector"].as_str().unwrap();
        if is_left_out(vector) {
            continue;
        }
        let expected: Vec<Vec<String>> = serde_json::from_value(capture["redis_commands"].clone()).unwrap();
        let pushed: Vec<&str> = expected
            .iter()
            .filter(|each| each[0] == "LPUSH")
            .map(|each| each[2].as_str())
            .collect();
        let variant = capture["variant"].as_str();
        let actual = if pushed.is_empty() {
            let encoder = encoder("x", variant);
            let at = "2026-11-15T19:00:00Z".parse().unwrap();
            redis_commands(
                &encoder,
                &messages(vector, &encoder, &[&Uuid::nil().to_string()], "", at),
                &[],
            )
        } else {
            let texts = |of: &str| -> Vec<String> { pushed.iter().map(|push| entry(push, of)).collect() };
            let (ids, tags) = (texts("id"), texts("delivery_tag"));
            let first = pushed[0];
            let headers = json!({"eta": optional(first, "eta"), "expires": optional(first, "expires")});
            let at = called_at(vector, &headers, optional(first, "expiration").as_deref());
            let encoder = encoder(&entry(first, "origin"), variant);
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let tags: Vec<Uuid> = tags.iter().map(|tag| Uuid::parse_str(tag).unwrap()).collect();
            redis_commands(
                &encoder,
                &messages(vector, &encoder, &ids, &entry(first, "reply_to"), at),
                &tags,
            )
        };
        let comparable = |commands: &[Vec<String>], adapt: bool| -> String {
            let commands = commands
                .iter()
                .map(|command| comparable(command, adapt.then_some(vector)));
            with_named_ids(&commands.collect::<Vec<_>>().join("\n"))
        };
        assert_eq!(comparable(&actual, false), comparable(&expected, true), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 57, "number of compared captures");
}

/// A command as text. The body is decoded, so that a difference is readable; the rest stays byte for byte.
fn comparable(command: &[String], adapt: Option<&str>) -> String {
    if command[0] != "LPUSH" {
        return command.join(" ");
    }
    let envelope = &command[2];
    let body = entry(envelope, "body");
    let mut shown = envelope.replace(&body, &without_reply_to(&readable(&body)));
    if let Some(vector @ ("args_kwargs" | "type_int_keys")) = adapt {
        let start = shown.find("\"argsrepr\": \"").unwrap() + "\"argsrepr\": \"".len();
        let end = start + shown[start..].find("\", \"kwargsrepr\"").unwrap();
        let printed = printed_from_json(vector, &shown[start..end]);
        shown.replace_range(start..end, &printed);
    }
    format!("LPUSH {} {shown}", command[1])
}

/// The first text entry with this name in a JSON text.
fn entry(json: &str, name: &str) -> String {
    optional(json, name).unwrap_or_else(|| panic!("no {name} in {json}"))
}

fn optional(json: &str, name: &str) -> Option<String> {
    let start = format!("\"{name}\": \"");
    let (_, rest) = json.split_once(&start)?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

#[test]
fn a_pickle_is_refused() {
    let task = stored(
        Uuid::nil(),
        "demo.add",
        r#"{"args":[1,2],"options":{"serializer":"pickle"}}"#.to_owned(),
        Headers::new(),
    );
    let at = "2026-11-15T19:00:00Z".parse().unwrap();
    let call = sendoff_sink_celery::TaskCall::from_delivery(&capture::outgoing(&task, at)).unwrap();
    let error = encoder("x", None).encode(&call, at).unwrap_err();
    assert!(error.to_string().contains("json and yaml"), "{error}");
}
