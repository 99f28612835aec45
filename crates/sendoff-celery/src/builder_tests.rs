use serde_json::{Value, json};

use super::*;
use sendoff::message::Schedule;

fn payload(task: Task) -> Value {
    serde_json::from_slice(Message::from(task).payload()).unwrap()
}

fn options(task: Task) -> Value {
    payload(task)["options"].clone()
}

#[test]
fn a_bare_task_is_stored_as_documented() {
    let task = Task::new("shop.tasks.charge");
    let id = task.id();
    let message = Message::from(task);
    let payload = r#"{"args":[],"kwargs":{},"options":{}}"#;
    assert_eq!(
        message,
        Message::bytes("shop.tasks.charge", CONTENT_TYPE, payload).with_id(id)
    );
}

#[test]
fn arguments_keep_their_order_and_their_digits() {
    let raw = serde_json::value::RawValue::from_string("123456789012345678901234567890".to_owned()).unwrap();
    #[derive(Serialize)]
    struct Kwargs<'a> {
        zeta: u128,
        a: &'a str,
    }
    let task = Task::new("t")
        .args((raw, 0.1, u64::MAX))
        .unwrap()
        .kwargs(Kwargs {
            zeta: u128::MAX,
            a: "é",
        })
        .unwrap();
    assert_eq!(
        std::str::from_utf8(Message::from(task).payload()).unwrap(),
        concat!(
            r#"{"args":[123456789012345678901234567890,0.1,18446744073709551615],"#,
            r#""kwargs":{"zeta":340282366920938463463374607431768211455,"a":"é"},"options":{}}"#
        )
    );
}

#[test]
fn arguments_of_the_wrong_shape_are_refused() {
    assert!(Task::new("t").args("text").is_err());
    assert!(Task::new("t").args(json!({"a": 1})).is_err());
    assert!(Task::new("t").kwargs((1, 2)).is_err());
    assert_eq!(payload(Task::new("t").args(()).unwrap())["args"], json!([]));
}

#[test]
fn a_float_that_json_cannot_say_is_refused_and_not_turned_into_null() {
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = Task::new("t").args((json!({"a": [1]}), Some([float]))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("NaN"), "{error}");
        assert!(Task::new("t").header_value("h", &float).is_err());
    }
    assert!(Task::new("t").args([f32::NAN]).is_err());
    assert!(Task::new("t").args((None::<u8>, (), 1.5)).is_ok());
}

#[test]
fn every_option_has_its_celery_name() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_500_000);
    let task = Task::new("t")
        .countdown(Duration::from_millis(1500))
        .eta(at)
        .expires_in(Duration::from_secs(300))
        .queue("q")
        .exchange("x")
        .routing_key("k")
        .priority(7)
        .header("tenant", "acme")
        .header_value("n", &[1])
        .unwrap()
        .time_limit(Duration::from_secs(30))
        .soft_time_limit(Duration::from_millis(20_500))
        .retries(2)
        .ignore_result(true)
        .shadow("s")
        .stamp("monitoring_id", "m-1")
        .unwrap()
        .root_id("r")
        .parent_id("p")
        .reply_to("me")
        .serializer(Serializer::Yaml)
        .compression(Compression::Gzip)
        .persistent(false)
        .argsrepr("(hidden)")
        .kwargsrepr("{hidden}");
    assert_eq!(
        options(task),
        json!({
            "countdown": 1.5, "eta": "1970-01-01T00:00:01.500000+00:00", "expires": 300, "queue": "q", "exchange": "x",
            "routing_key": "k", "priority": 7, "headers": {"tenant": "acme", "n": [1]}, "time_limit": 30,
            "soft_time_limit": 20.5, "retries": 2, "ignore_result": true, "shadow": "s", "monitoring_id": "m-1",
            "stamped_headers": ["monitoring_id"], "root_id": "r", "parent_id": "p", "reply_to": "me",
            "serializer": "yaml", "compression": "gzip", "delivery_mode": 1, "argsrepr": "(hidden)",
            "kwargsrepr": "{hidden}",
        })
    );
}

#[test]
fn every_option_that_is_written_is_documented() {
    let task = Task::group([Task::new("t")
        .link(Task::new("a"))
        .link_error(Task::new("b"))
        .then(Task::new("c"))
        .header("h", "v")
        .expires_at(SystemTime::UNIX_EPOCH)]);
    for name in options(task.into_iter().next().unwrap()).as_object().unwrap().keys() {
        assert!(OPTIONS.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn a_chain_is_stored_last_step_first() {
    let chain = options(Task::new("a").then(Task::new("b")).then(Task::new("c")))["chain"].clone();
    assert_eq!((&chain[0]["task"], &chain[1]["task"]), (&json!("c"), &json!("b")));
    assert!(chain[0]["options"]["task_id"].is_string());
}

#[test]
fn the_ids_in_a_chain_are_made_once() {
    let task = Task::new("a").then(Task::new("b"));
    assert_eq!(payload(task.clone()), payload(task));
}

#[test]
fn a_stamp_cannot_hide_an_option() {
    assert!(Task::new("t").stamp("queue", "x").is_err());
}

#[test]
fn a_held_task_becomes_available_shortly_before_it_is_due() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let schedule = |task: Task| Message::from(task).schedule();
    let lead = Duration::from_secs(10);
    assert_eq!(schedule(Task::new("t").eta(at)), None);
    assert_eq!(schedule(Task::new("t").hold_until_due(lead)), None);
    assert_eq!(
        schedule(Task::new("t").eta(at).hold_until_due(lead)),
        Some(Schedule::At(at - lead))
    );
    assert_eq!(
        schedule(Task::new("t").hold_until_due(lead).countdown(Duration::from_secs(60))),
        Some(Schedule::In(Duration::from_secs(50)))
    );
    assert_eq!(
        schedule(Task::new("t").hold_until_due(lead).countdown(Duration::from_secs(5))),
        Some(Schedule::In(Duration::ZERO))
    );
}

#[test]
fn what_the_outbox_needs_to_know_reaches_the_message() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(9);
    let message: Message = Task::new("t")
        .key("k")
        .idempotency_key("i")
        .max_attempts(3)
        .expires_at(at)
        .on_duplicate(OnDuplicate::Fail)
        .into();
    let expected = Message::bytes("t", CONTENT_TYPE, message.payload().clone())
        .with_id(message.id())
        .key("k")
        .idempotency_key("i")
        .max_attempts(3)
        .expires_at(at)
        .on_duplicate(OnDuplicate::Fail);
    assert_eq!(message, expected);
}
