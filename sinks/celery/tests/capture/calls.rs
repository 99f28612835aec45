//! The calls behind the captures of Celery.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use sendoff::{Headers, Message, Uuid};
use sendoff_celery::{Compression, Serializer, Signature, Task, Typed};
use sendoff_sink_celery::CeleryConfig;
use serde_json::json;

use super::stored;

/// `FUT` in the captures.
const FUTURE: &str = "2031-05-06T07:08:09.123456+00:00";

/// Calls without a counterpart, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("type_set", "Celery refuses it, too"),
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

/// The call of a capture, with this project's builder; as stored JSON only where Rust has no such value.
pub(crate) fn call(vector: &str) -> Vec<Message> {
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
        // A relay ignores the retry options of a Python producer.
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
        other => panic!("there is no call for the capture {other:?}"),
    }
}

/// Whether a call has no counterpart.
pub(crate) fn is_left_out(vector: &str) -> bool {
    LEFT_OUT.iter().any(|(left_out, _)| *left_out == vector)
}

/// The settings of the captured application.
pub(crate) fn config(origin: &str, variant: Option<&str>) -> CeleryConfig {
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
    config
}
