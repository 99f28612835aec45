//! Metadata of a task: headers, stamps, names, and its origin.

use std::time::Duration;

use serde_json::json;

use super::{Producer, Scenario, Then, first, scenario};

/// Why Django's tasks do not have it.
const DROPPED: &str = "the package drops it when it enqueues";

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("time_limits")
            .django("join.apply_async((tag, 'a'), time_limit=60, soft_time_limit=50)")
            .rust(|it| {
                let task = it.join("a").time_limit(Duration::from_secs(60));
                vec![task.soft_time_limit(Duration::from_secs(50))]
            })
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"time_limit": 60, "soft_time_limit": 50}}"#,
            )
            .runs([first(json!({"result": "TAGa", "timelimit": [60, 50]}))]),
        scenario("ignore_result_true")
            .django("join.apply_async((tag, 'a'), ignore_result=True)")
            .rust(|it| vec![it.join("a").ignore_result(true)])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"ignore_result": true}}"#,
            )
            .runs([first(json!({"result": "TAGa", "ignore_result": true}))]),
        scenario("ignore_result_task")
            .django("quiet.delay(tag)")
            .rust(|it| vec![it.task("shop.quiet", [&it.tag]).ignore_result(true)])
            .sql("shop.quiet", r#"{"args": ["TAG"], "options": {"ignore_result": true}}"#)
            .runs([first(json!({"task": "shop.quiet", "ignore_result": true}))]),
        scenario("group_id_index")
            .django("join.apply_async((tag, 'a'), group_id='44444444-4444-4444-8444-444444444444', group_index=2)")
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"],
                    "options": {"group_id": "44444444-4444-4444-8444-444444444444", "group_index": 2}}"#,
            )
            .runs([first(json!({
                "result": "TAGa", "group": "44444444-4444-4444-8444-444444444444", "group_index": 2,
            }))])
            .except(
                Producer::Rust,
                Then::Unsaid,
                "Task::group counts its members itself: see group3",
            ),
        scenario("shadow")
            .django("join.apply_async((tag, 'a'), shadow='pretty.name')")
            .rust(|it| vec![it.join("a").shadow("pretty.name")])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"shadow": "pretty.name"}}"#,
            )
            .runs([first(
                json!({"result": "TAGa", "task": "shop.join", "shadow": "pretty.name"}),
            )]),
        scenario("stamped")
            .django("stamped(join.s(tag, 'a'), monitoring_id='m-1').apply_async()")
            .rust(|it| vec![it.join("a").stamp("monitoring_id", "m-1").unwrap()])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"stamped_headers": ["monitoring_id"], "monitoring_id": "m-1"}}"#,
            )
            .runs([first(json!({
                "result": "TAGa", "stamped_headers": ["monitoring_id"], "stamps": {"monitoring_id": "m-1"},
            }))]),
        scenario("argsrepr_override")
            .django("join.apply_async((tag, 'a'), argsrepr='(hidden)', kwargsrepr='{hidden}')")
            .rust(|it| vec![it.join("a").argsrepr("(hidden)").kwargsrepr("{hidden}")])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"argsrepr": "(hidden)", "kwargsrepr": "{hidden}"}}"#,
            )
            .runs([first(
                json!({"result": "TAGa", "argsrepr": "(hidden)", "kwargsrepr": "{hidden}"}),
            )]),
        scenario("part_of_other_work")
            .django("join.apply_async((tag, 'a'), root_id='the-root', parent_id='the-parent')")
            .rust(|it| vec![it.join("a").root_id("the-root").parent_id("the-parent")])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"root_id": "the-root", "parent_id": "the-parent"}}"#,
            )
            .runs([first(
                json!({"result": "TAGa", "root_id": "the-root", "parent_id": "the-parent"}),
            )]),
        scenario("tried_before")
            .django("join.apply_async((tag, 'a'), retries=3)")
            .rust(|it| vec![it.join("a").retries(3)])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"retries": 3}}"#)
            .runs([first(json!({"result": "TAGa", "retries": 3}))]),
        scenario("reply_to")
            .django("join.apply_async((tag, 'a'), reply_to='answers')")
            .rust(|it| vec![it.join("a").reply_to("answers")])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"reply_to": "answers"}}"#,
            )
            .runs([first(json!({"result": "TAGa", "reply_to": "answers"}))])
            .except(
                Producer::Django,
                Then::Runs(vec![first(json!({"result": "TAGa", "reply_to": null}))]),
                DROPPED,
            ),
        scenario("headers")
            .django("join.apply_async((tag, 'a'), headers={'tenant': 'acme'})")
            .rust(|it| {
                let task = it.join("a").header("tenant", "acme");
                let task = task.header_value("weight", &json!({"kg": 1.5, "pieces": [1, 5_000_000_000_u64]}));
                vec![task.unwrap()]
            })
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options":
                    {"headers": {"tenant": "acme", "weight": {"kg": 1.5, "pieces": [1, 5000000000]}}}}"#,
            )
            .runs([first(json!({
                "result": "TAGa", "tenant": "acme", "weight": {"kg": 1.5, "pieces": [1, 5_000_000_000_u64]},
            }))])
            .except(
                Producer::Django,
                Then::Runs(vec![first(json!({"result": "TAGa", "tenant": null}))]),
                DROPPED,
            ),
        scenario("sentry")
            .django("traced(lambda: join.delay(tag, 'a'))")
            .rust(|it| vec![it.join("a").header("sentry-trace", "0-1").header("baggage", "a=b")])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"headers": {"sentry-trace": "0-1", "baggage": "a=b"}}}"#,
            )
            .runs([first(
                json!({"result": "TAGa", "sentry-trace": "ANY", "baggage": "ANY"}),
            )]),
    ]
}
