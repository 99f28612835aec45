//! Where tasks go, and which of them first.

use std::time::Duration;

use sendoff_celery::Compression;
use serde_json::{Value, json};

use super::{Producer, Scenario, Then, first, scenario};

fn through(exchange: &str, routing_key: &str) -> Value {
    json!({"exchange": exchange, "routing_key": routing_key})
}

fn with_priority(priority: u8) -> Value {
    first(json!({"result": "TAGa", "delivery_info": {"priority": priority}}))
}

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("queue_name")
            .on_quorum()
            .django("join.apply_async((tag, 'a'), queue=queue + '.mail')")
            .rust(|it| vec![it.join("a").queue(&format!("{}.mail", it.queue))])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"queue": "QUEUE.mail"}}"#)
            .runs([first(json!({"result": "TAGa", "delivery_info": {"routing_key": "QUEUE.mail"}}))]),
        scenario("exchange_routing_key")
            .django("join.apply_async((tag, 'a'), exchange=queue + '.exchange', routing_key='my.key')")
            .rust(|it| vec![it.join("a").exchange(&format!("{}.exchange", it.queue)).routing_key("my.key")])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"exchange": "QUEUE.exchange", "routing_key": "my.key"}}"#,
            )
            .runs([first(json!({"result": "TAGa", "delivery_info": through("QUEUE.exchange", "my.key")}))]),
        // As in Celery, it has no effect without an exchange.
        scenario("routing_key_only")
            .django("join.apply_async((tag, 'a'), routing_key='only.rk')")
            .rust(|it| vec![it.join("a").routing_key("only.rk")])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"routing_key": "only.rk"}}"#)
            .runs([first(json!({"result": "TAGa", "delivery_info": through("", "QUEUE")}))]),
        scenario("task_routes_exact")
            .django("routed.delay(tag)")
            .rust(|it| vec![it.task("shop.routed", [&it.tag])])
            .sql("shop.routed", r#"{"args": ["TAG"]}"#)
            .runs([first(json!({"result": [["TAG"], {}], "delivery_info": through("", "QUEUE.routed")}))]),
        scenario("task_routes_glob")
            .django("glob_one.delay(tag)")
            .rust(|it| vec![it.task("shop.glob.one", [&it.tag])])
            .sql("shop.glob.one", r#"{"args": ["TAG"]}"#)
            .runs([first(json!({"result": [["TAG"], {}], "delivery_info": through("", "QUEUE.glob")}))]),
        scenario("route_name")
            .django("join.apply_async((tag, 'a'), route_name='shop.routed')")
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"route_name": "shop.routed"}}"#)
            .runs([first(json!({"result": "TAGa", "delivery_info": through("", "QUEUE.routed")}))])
            .except(Producer::Rust, Then::Unsaid, "the builder has queue for it"),
        // It returns to its own queue, not to the default one.
        scenario("retried_by_the_worker")
            .django("again.apply_async((tag,), queue=queue + '.mail')")
            .rust(|it| vec![it.task("shop.again", [&it.tag]).queue(&format!("{}.mail", it.queue))])
            .sql("shop.again", r#"{"args": ["TAG"], "options": {"queue": "QUEUE.mail"}}"#)
            .runs([0, 1].map(|retries| {
                first(json!({
                    "result": "TAG", "retries": retries, "root_id": "$id", "delivery_info": {"routing_key": "QUEUE.mail"},
                }))
            })),
        scenario("priority_5")
            .early()
            .django("join.apply_async((tag, 'a'), priority=5)")
            .rust(|it| vec![it.join("a").priority(5)])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"priority": 5}}"#)
            .runs([with_priority(5)]),
        scenario("priority_9")
            .early()
            .django("join.apply_async((tag, 'a'), priority=9)")
            .rust(|it| vec![it.join("a").priority(9)])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"priority": 9}}"#)
            .runs([with_priority(9)]),
        scenario("priority_0")
            .early()
            .django("join.apply_async((tag, 'a'), priority=0)")
            .rust(|it| vec![it.join("a").priority(0)])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"priority": 0}}"#)
            .runs([with_priority(0)]),
        scenario("priority_3")
            .early()
            .django("join.apply_async((tag, 'a'), priority=3)")
            .rust(|it| vec![it.join("a").priority(3)])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"priority": 3}}"#)
            .runs([with_priority(3)]),
        scenario("delivery_mode_1")
            .django("join.apply_async((tag, 'a'), delivery_mode=1)")
            .rust(|it| vec![it.join("a").persistent(false)])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"delivery_mode": 1}}"#)
            .runs([first(json!({"result": "TAGa", "properties": {"delivery_mode": 1}}))])
            .except(
                Producer::Django,
                Then::Runs(vec![first(json!({"result": "TAGa", "properties": {"delivery_mode": 2}}))]),
                "the package drops it when it enqueues",
            ),
        scenario("task_defaults")
            .django("defaults.delay(tag)")
            .rust(|it| {
                let secs = Duration::from_secs;
                let task = it.task("shop.defaults", [&it.tag]).queue(&format!("{}.defaults", it.queue));
                let task = task.priority(7).expires_in(secs(900)).time_limit(secs(30));
                vec![task.soft_time_limit(secs(20)).compression(Compression::Gzip)]
            })
            .sql(
                "shop.defaults",
                r#"{"args": ["TAG"], "options": {"queue": "QUEUE.defaults", "priority": 7, "expires": 900,
                    "time_limit": 30, "soft_time_limit": 20, "compression": "gzip"}}"#,
            )
            .runs([first(defaults(json!("application/x-gzip")))])
            .except(
                Producer::Django,
                Then::Runs(vec![first(defaults(Value::Null))]),
                "the package drops the compression when it enqueues",
            ),
    ]
}

fn defaults(compression: Value) -> Value {
    json!({
        "result": [["TAG"], {}], "expires": "ANY", "timelimit": [30, 20], "compression": compression,
        "delivery_info": {"routing_key": "QUEUE.defaults", "priority": 7},
    })
}
