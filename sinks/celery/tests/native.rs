//! Every capture of Celery itself against what this crate writes for the same call.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by it")]

mod capture;

use std::time::{Duration, SystemTime};

use capture::{amqp_commands, captures, encode, readable, redis_commands, stored, with_named_ids, without_reply_to};
use jiff::{SignedDuration, Timestamp};
use sendoff::task::{Compression, Serializer, Signature, Typed};
use sendoff::{Headers, Message, Task, Uuid};
use sendoff_sink_celery::{CeleryConfig, CeleryMessage, Encoder};
use serde_json::{Value, json};

/// What the captures call `FUT`.
const FUTURE: &str = "2031-05-06T07:08:09.123456+00:00";

/// Calls that have no counterpart, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("type_set", "Celery itself refuses it"),
    ("serializer_pickle", "only Python can write it; see a_pickle_is_refused"),
];

fn future() -> SystemTime {
    SystemTime::from(FUTURE.parse::<Timestamp>().unwrap())
}

fn add(args: (i32, i32)) -> Task {
    Task::new("demo.add").args(args).unwrap().ignore_result(false)
}

fn echo(args: impl serde::Serialize) -> Task {
    Task::new("demo.echo").args(args).unwrap().ignore_result(false)
}

/// The call of a capture, made with this project's builder; as stored JSON only where Rust has no such value.
fn call(vector: &str) -> Vec<Message> {
    let secs = Duration::from_secs;
    let bare_add = |args: &[i32]| Task::new("demo.add").args(args).unwrap();
    let json = |task: &str, payload: &str| stored(Uuid::now_v7(), task, payload.to_owned(), Headers::new());
    let json_echo = |args: &str| {
        json(
            "demo.echo",
            &format!(r#"{{"args":{args},"options":{{"ignore_result":false}}}}"#),
        )
    };
    let one = |task: Task| vec![Message::from(task)];
    match vector {
        "plain" => one(add((2, 3))),
        "args_kwargs" => vec![json(
            "demo.echo",
            concat!(
                r#"{"args":[1,"é",null,true,1.5,[1,2],{"b":1,"a":{"n":null}}],"#,
                r#""kwargs":{"zeta":1,"a":"x","jp":"日本","q":"it's \"q\""},"options":{"ignore_result":false}}"#
            ),
        )],
        "argsrepr_override" => one(add((1, 2)).argsrepr("(hidden)").kwargsrepr("{hidden}")),
        "by_name_unregistered" => one(Task::new("other.service.task")
            .args(["a"])
            .unwrap()
            .kwargs(json!({"k": 1}))
            .unwrap()),
        "chain3" => one(add((1, 1)).then(bare_add(&[2])).then(bare_add(&[3]))),
        "chain_of_group" => one(add((1, 1)).then(Signature::chord(
            [bare_add(&[2]), bare_add(&[3])],
            Task::new("demo.xsum"),
        ))),
        "chord2" => {
            let (group, body) = (Uuid::now_v7(), Uuid::now_v7());
            [(1, 0), (2, 1)].map(|(number, index)| {
                json("demo.add", &format!(concat!(
                    r#"{{"args":[{0},{0}],"options":{{"ignore_result":false,"group_id":"{2}","group_index":{1},"#,
                    r#""chord":{{"task":"demo.xsum","args":[],"kwargs":{{}},"#,
                    r#""options":{{"task_id":"{3}","group_id":"{2}"}},"subtask_type":null,"immutable":false}}}}}}"#
                ), number, index, group, body))
            }).into()
        }
        "compression_gzip" => one(add((1, 2)).compression(Compression::Gzip)),
        "countdown" => one(add((1, 2)).countdown(secs(3600))),
        "delivery_mode_1" => one(add((1, 2)).persistent(false)),
        "eta_naive" => vec![json(
            "demo.add",
            r#"{"args":[1,2],"options":{"eta":"2031-05-06T07:08:09.123456","ignore_result":false}}"#,
        )],
        "eta_utc" => one(add((1, 2)).eta(future())),
        "exchange_routing_key" => one(add((1, 2)).exchange("myx").routing_key("my.key")),
        "expires_datetime" => one(add((1, 2)).expires_at(future())),
        "expires_float" => one(add((1, 2)).expires_in(Duration::from_millis(1500))),
        "expires_int" => one(add((1, 2)).expires_in(secs(300))),
        "group3" => Task::group((0..3).map(|i| add((i, i))))
            .into_iter()
            .map(Message::from)
            .collect(),
        "group_id_index" => vec![json(
            "demo.add",
            concat!(
                r#"{"args":[1,2],"options":{"group_id":"44444444-4444-4444-8444-444444444444","#,
                r#""group_index":2,"ignore_result":false}}"#
            ),
        )],
        "ignore_result_task" => one(Task::new("demo.noop").args([1]).unwrap().ignore_result(true)),
        "ignore_result_true" => one(add((1, 2)).ignore_result(true)),
        "link" => one(add((1, 2)).link(bare_add(&[10]))),
        "link_error" => one(Task::new("demo.fail")
            .ignore_result(false)
            .link_error(Task::new("demo.onerr"))),
        "no_args" => one(echo(())),
        "priority_0" => one(add((1, 2)).priority(0)),
        "priority_3" => one(add((1, 2)).priority(3)),
        "priority_5" => one(add((1, 2)).priority(5)),
        "queue_name" => one(add((1, 2)).queue("emails")),
        // How a producer in Python retries is none of a relay's business.
        "retry_false" | "retry_policy" => one(add((1, 2))),
        "routing_key_only" => one(add((1, 2)).routing_key("only.rk")),
        "serializer_yaml" => one(add((1, 2)).serializer(Serializer::Yaml)),
        "shadow" => one(add((1, 2)).shadow("pretty.name")),
        "stamped" => one(add((1, 2)).stamp("monitoring_id", "m-1").unwrap()),
        "task_defaults" => one(Task::new("demo.defaults")
            .args([1])
            .unwrap()
            .ignore_result(false)
            .queue("defq")
            .priority(7)
            .expires_in(secs(900))
            .time_limit(secs(30))
            .soft_time_limit(secs(20))
            .compression(Compression::Gzip)),
        "task_routes_exact" => one(Task::new("demo.routed").args([1]).unwrap().ignore_result(false)),
        "task_routes_glob" => one(Task::new("demo.glob.one").args([1]).unwrap().ignore_result(false)),
        "task_serializer_yaml" => one(Task::new("demo.yamlser")
            .args(["x"])
            .unwrap()
            .ignore_result(false)
            .serializer(Serializer::Yaml)),
        "time_limits" => one(add((1, 2)).time_limit(secs(30)).soft_time_limit(secs(20))),
        "type_bytes" => one(echo([Typed::bytes([0, 255])])),
        "type_datetime" => one(echo([Typed::datetime(future())])),
        "type_int_keys" => one(echo([json!({"1": "a", "null": "b"})])),
        "type_lone_surrogate" => vec![json_echo(r#"["\ud800"]"#)],
        "type_nan" => vec![json_echo("[NaN]")],
        "type_nul" => one(echo(["a\0b"])),
        "type_uuid_decimal" => one(echo((
            Typed::uuid(Uuid::from_u128(0x1234_5678_1234_5678_1234_5678_1234_5678)),
            Typed::decimal("1.10"),
        ))),
        other => panic!("no call is written down for the capture {other:?}"),
    }
}

/// When the captured call was made, as far as the message tells.
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
    let mut config: CeleryConfig = toml::from_str(
        r#"
        [[routes]]
        task = "demo.glob.*"
        queue = "glob_q"
        [[routes]]
        task = "demo.routed"
        queue = "routed_q"
        "#,
    )
    .unwrap();
    config.origin = Some(origin.to_owned());
    config.redis.permanent_bindings = !variant.is_some_and(|variant| variant.starts_with("celery5"));
    Encoder::new(&config).unwrap()
}

/// The messages of a call, with the ids and the reply queue of the capture.
fn messages(vector: &str, encoder: &Encoder, ids: &[&str], reply_to: &str, at: Timestamp) -> Vec<CeleryMessage> {
    let calls = call(vector);
    assert_eq!(calls.len(), ids.len(), "{vector}: how many messages");
    let encoded = calls.into_iter().zip(ids).map(|(message, id)| {
        let message = message.with_id(Uuid::parse_str(id).unwrap());
        let mut encoded = encode(encoder, &message, at, at);
        encoded.properties.reply_to = Some(reply_to.into());
        encoded
    });
    encoded.collect()
}

/// Where Celery prints what a JSON text cannot hold: the list that the arguments were given as, and keys of other types.
fn printed_from_json(vector: &str, argsrepr: &str) -> String {
    match vector {
        "args_kwargs" => format!("({})", &argsrepr[1..argsrepr.len() - 1]),
        "type_int_keys" => argsrepr.replace("1:", "'1':").replace("None:", "'null':"),
        _ => argsrepr.to_owned(),
    }
}

fn is_left_out(vector: &str) -> bool {
    LEFT_OUT.iter().any(|(left_out, _)| *left_out == vector)
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
        let mut expected = capture["amqp_commands"].as_array().unwrap().clone();
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
        let mut actual = amqp_commands(&messages(vector, &encoder, &ids, reply_to, at));

        for command in expected.iter_mut().filter(|each| each["method"] == "basic.publish") {
            let argsrepr = &mut command["properties"]["headers"]["argsrepr"]["v"];
            *argsrepr = printed_from_json(vector, argsrepr.as_str().unwrap()).into();
            // Absent and 0 are the same priority. Celery leaves it out for a queue that the caller names.
            if vector == "queue_name" {
                assert_eq!(
                    command["properties"]
                        .as_object_mut()
                        .unwrap()
                        .insert("priority".into(), json!(0)),
                    None
                );
            }
            // RabbitMQ would refuse this one, and Celery would not notice.
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
    assert_eq!(compared, 57, "captures that were compared");
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
    assert_eq!(compared, 57, "captures that were compared");
}

/// A command as text. The body is decoded, so that a difference in it can be read; all else stays byte for byte.
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

/// The first text entry of a name in a JSON text.
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
    let call = sendoff_sink_celery::TaskCall::from_delivery(&capture::delivery(&task, at)).unwrap();
    let error = encoder("x", None).encode(&call, at).unwrap_err();
    assert!(error.to_string().contains("json and yaml"), "{error}");
}
