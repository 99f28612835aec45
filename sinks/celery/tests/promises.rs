//! Cases without a capture: elapsed time, and other settings than Celery's defaults.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod capture;

use capture::{encode, stored};
use jiff::{SignedDuration, Timestamp};
use sendoff::{Headers, Message, Uuid};
use sendoff_sink_celery::amqp::{AmqpPublish, Field};
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::python::Value;
use sendoff_sink_celery::redis::{RedisPublish, RedisTarget};
use sendoff_sink_celery::{CeleryConfig, CeleryMessage, Encoder, TaskCall};

fn emitted() -> Timestamp {
    "2026-11-15T19:00:00Z".parse().unwrap()
}

fn task(options: &str) -> Message {
    stored(
        Uuid::from_u128(7),
        "demo.add",
        format!(r#"{{"args":[1,2],"options":{options}}}"#),
        Headers::new(),
    )
}

fn encoder(toml: &str) -> Encoder {
    Encoder::new(&toml::from_str::<CeleryConfig>(toml).unwrap()).unwrap()
}

fn sent_after(options: &str, seconds: i64) -> CeleryMessage {
    let now = emitted() + SignedDuration::from_secs(seconds);
    encode(&encoder(""), &task(options), emitted(), now)
}

#[test]
fn a_relay_that_was_down_gives_a_task_no_more_time() {
    let options = r#"{"countdown":3600,"expires":300}"#;
    for (seconds, left) in [(0, 300_000), (100, 200_000), (299, 1000), (300, 0), (5000, 0)] {
        let message = sent_after(options, seconds);
        assert_eq!(message.header("eta"), Some(&"2026-11-15T20:00:00+00:00".into()));
        assert_eq!(message.header("expires"), Some(&"2026-11-15T19:05:00+00:00".into()));
        assert_eq!(message.properties.expiration, Some(left), "after {seconds} s");
    }
}

#[test]
fn a_countdown_counts_more_than_an_eta_and_one_of_zero_not_at_all() {
    let eta = "2031-05-06T07:08:09+00:00";
    let header = |countdown: &str| {
        let options = format!(r#"{{"countdown":{countdown},"eta":"{eta}"}}"#);
        sent_after(&options, 0).header("eta").cloned()
    };
    assert_eq!(header("0"), Some(eta.into()));
    assert_eq!(header("0.5"), Some("2026-11-15T19:00:00.500000+00:00".into()));
}

#[test]
fn an_option_of_the_wrong_type_is_refused_by_its_name() {
    for (name, bad) in [
        ("countdown", "\"5\""),
        ("countdown", "NaN"),
        ("eta", "5"),
        ("eta", "\"soon\""),
        ("expires", "true"),
        ("priority", "-1"),
        ("priority", "256"),
        ("priority", "1.5"),
        ("queue", "{}"),
        ("queue", r#""\ud800""#),
        ("route_name", "1"),
        ("headers", "[]"),
        ("link", "[1]"),
        ("link", "{}"),
        ("chain", "\"x\""),
        ("retries", "\"1\""),
        ("ignore_result", "1"),
        ("time_limit", "\"1\""),
        ("delivery_mode", "3"),
        ("exchange_type", "\"x\""),
        ("group_index", "-1"),
    ] {
        let message = task(&format!(r#"{{"{name}":{bad}}}"#));
        let call = TaskCall::from_delivery(&capture::outgoing(&message, emitted()));
        let error = call.and_then(|call| encoder("").encode(&call, emitted())).unwrap_err();
        assert_eq!(error.kind(), sendoff::ErrorKind::Invalid);
        let said = error.to_string();
        assert!(said.contains(&format!("{name:?}")), "{name} {bad}: {said}");
    }
}

#[test]
fn headers_of_the_outbox_cannot_replace_celerys_and_those_of_the_task_can() {
    let mut headers = Headers::new();
    headers.insert("traceparent", "00-ab");
    headers.insert("id", "forged");
    let payload = r#"{"options":{"headers":{"shadow":"own","n":{"big":4294967296,"half":0.5}}}}"#.to_owned();
    let message = stored(Uuid::from_u128(7), "t", payload, headers);
    let message = encode(&encoder(""), &message, emitted(), emitted());
    assert_eq!(
        message.header("id"),
        Some(&Uuid::from_u128(7).to_string().as_str().into())
    );
    assert_eq!(message.header("shadow"), Some(&"own".into()));
    assert_eq!(message.header("traceparent"), Some(&"00-ab".into()));
    assert_eq!(message.headers.len(), 19 + 2);
    let publish = AmqpPublish::new(message.clone(), Declare::Off).unwrap();
    let (_, n) = publish.properties.headers.iter().find(|(name, _)| name == "n").unwrap();
    let entries = vec![
        ("big".to_owned(), Field::Long(1 << 32)),
        ("half".to_owned(), Field::Double(0.5)),
    ];
    assert_eq!(n, &Field::Table(entries));
}

#[test]
fn a_task_may_be_routed_by_another_name_than_its_own() {
    let encoder = encoder("[[routes]]\ntask = \"shop.urgent\"\nqueue = \"fast\"\npriority = 5");
    for (options, queue, priority) in [
        ("{}", "celery", 0),
        (r#"{"route_name": "shop.urgent"}"#, "fast", 5),
        (r#"{"route_name": ""}"#, "celery", 0),
        (r#"{"route_name": "shop.urgent", "queue": "own"}"#, "own", 5),
    ] {
        let message = encode(&encoder, &task(options), emitted(), emitted());
        assert_eq!(message.destination.routing_key, queue, "{options}");
        assert_eq!(message.properties.priority, priority, "{options}");
        assert_eq!(message.header("task"), Some(&"demo.add".into()));
    }
}

#[test]
fn whether_a_task_is_written_to_disk_is_said_by_itself_then_by_its_route_then_by_the_settings() {
    let mode = |toml: &str, options: &str| {
        let message = encode(&encoder(toml), &task(options), emitted(), emitted());
        message.properties.delivery_mode
    };
    let route = |persistent: bool| format!("[[routes]]\ntask = \"demo.*\"\npersistent = {persistent}");
    assert_eq!((mode("", "{}"), mode("persistent = false", "{}")), (2, 1));
    assert_eq!(mode(&route(false), "{}"), 1);
    assert_eq!(mode(&format!("persistent = false\n{}", route(true)), "{}"), 2);
    assert_eq!(mode(&route(false), r#"{"delivery_mode": 2}"#), 2);
}

#[test]
fn what_is_declared_follows_the_settings() {
    let message = sent_after("{}", 0);
    let declared = |declare| AmqpPublish::new(message.clone(), declare).unwrap().declaration;
    assert_eq!(declared(Declare::Off), None);
    assert!(declared(Declare::Passive).unwrap().passive);
    assert!(!declared(Declare::Active).unwrap().passive);
    let bindings = |declare| {
        RedisPublish::new(&message, declare, &CeleryConfig::default().redis, Uuid::nil())
            .bindings
            .len()
    };
    assert_eq!((bindings(Declare::Passive), bindings(Declare::Active)), (0, 2));
}

#[test]
fn the_longest_expiration_that_rabbitmq_takes_is_told_to_it() {
    let expiration = |millis: u64| {
        let seconds = format!("{}.{:03}", millis / 1000, millis % 1000);
        let message = sent_after(&format!(r#"{{"expires":{seconds}}}"#), 0);
        assert_eq!(message.properties.expiration, Some(millis));
        AmqpPublish::new(message.clone(), Declare::Off)
            .unwrap()
            .properties
            .expiration
    };
    assert_eq!(expiration(4_294_967_295).as_deref(), Some("4294967295"));
    assert_eq!(expiration(4_294_967_296), None);
}

#[test]
fn an_exchange_on_redis_leads_to_the_queues_that_are_bound_to_it() {
    let toml = "default_exchange_type = \"topic\"\ndefault_routing_key = \"a.b\"\n[redis]\nglobal_keyprefix = \"p:\"";
    let encoder = encoder(toml);
    let message = encode(&encoder, &task(r#"{"priority":7}"#), emitted(), emitted());
    let publish = RedisPublish::new(&message, Declare::Active, &encoder.config().redis, Uuid::nil());
    assert_eq!(publish.bindings[0].key, "p:_kombu.binding.celery");
    assert_eq!(publish.bindings[0].member, "a.b\u{6}\u{16}^a\\.b$\u{6}\u{16}celery");
    let RedisTarget::Exchange { table, .. } = &publish.target else {
        panic!("{:?}", publish.target)
    };
    assert_eq!(table, "p:_kombu.binding.celery");
    let members = [
        "a.*\u{6}\u{16}\u{6}\u{16}one",
        "x\u{6}\u{16}\u{6}\u{16}two",
        "#\u{6}\u{16}\u{6}\u{16}all",
    ];
    assert_eq!(
        publish.target.lists(members),
        ["p:all\u{6}\u{16}6", "p:one\u{6}\u{16}6"]
    );
    assert!(publish.target.lists([]).is_empty());
}

#[test]
fn further_properties_reach_the_broker_but_not_in_place_of_those_that_workers_need() {
    let message = sent_after(
        r#"{"properties":{"app_id":"shop","delivery_tag":"x","priority":9,"correlation_id":"x","expiration":"1","n":1}}"#,
        0,
    );
    let publish = AmqpPublish::new(message.clone(), Declare::Off).unwrap();
    assert_eq!(publish.properties.app_id.as_deref(), Some("shop"));
    assert_eq!(publish.properties.priority, 0);
    let redis = RedisPublish::new(
        &message,
        Declare::Off,
        &CeleryConfig::default().redis,
        Uuid::from_u128(9),
    );
    let envelope: serde_json::Value = serde_json::from_str(&redis.envelope).unwrap();
    let properties = &envelope["properties"];
    assert_eq!((&properties["app_id"], &properties["n"]), (&"shop".into(), &1.into()));
    assert_eq!(properties["delivery_tag"], Uuid::from_u128(9).to_string());
    assert_eq!(properties["priority"], 0);
    assert_eq!(properties["correlation_id"], Uuid::from_u128(7).to_string());
    assert_eq!(properties.get("expiration"), None);
}

#[test]
fn a_task_id_that_does_not_fit_into_amqp_is_refused() {
    let message = sent_after(&format!(r#"{{"task_id":"{}"}}"#, "x".repeat(256)), 0);
    assert!(AmqpPublish::new(message.clone(), Declare::Off).is_err());
    assert!(matches!(message.header("root_id"), Some(Value::Text(id)) if id.len() == 256));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for toml in [
        "timezone = \"Mars/Olympus\"",
        "redis.priority_steps = []",
        "redis.priority_steps = [3, 0]",
    ] {
        assert!(Encoder::new(&toml::from_str(toml).unwrap()).is_err(), "{toml}");
    }
}
