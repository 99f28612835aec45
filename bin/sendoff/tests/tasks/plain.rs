//! Arguments, ids, and options that only matter to a producer in Python.

use serde_json::json;

use super::{Producer, Scenario, Then, first, scenario};

/// Why Rust and SQL do not have this call.
const PRODUCERS_OWN: &str = "how a producer in Python sends is none of a relay's business";

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("plain")
            .on_quorum()
            .django("join.delay(tag, 'a')")
            .rust(|it| vec![it.join("a")])
            .sql("shop.join", r#"{"args": ["TAG", "a"]}"#)
            .runs([first(json!({
                "result": "TAGa", "task": "shop.join", "content_type": "application/json", "compression": null,
                "root_id": "$id", "parent_id": null, "group": null, "retries": 0, "timelimit": [null, null],
                "eta": null, "expires": null, "shadow": null, "stamps": {}, "correlation_id": "$id", "lang": "py",
                "argsrepr": "('TAG', 'a')", "kwargsrepr": "{}", "delivery_info": {"routing_key": "QUEUE"},
                "properties": {"delivery_mode": 2},
            }))]),
        scenario("no_args")
            .django("echo.delay()")
            .rust(|it| vec![it.task("shop.echo", ())])
            .sql("shop.echo", "{}")
            .runs([first(json!({"result": [[], {}], "argsrepr": "()"}))]),
        scenario("args_kwargs")
            .django(
                "echo.apply_async(args=[tag, '\u{e9}', None, True, 1.5, [1, 2], {'b': 1, 'a': {'n': None}}], \
                 kwargs={'zeta': 1, 'jp': '\u{65e5}\u{672c}', 'q': 'it\\'s \"q\"'})",
            )
            .rust(|it| {
                let args = json!([it.tag, "\u{e9}", null, true, 1.5, [1, 2], {"b": 1, "a": {"n": null}}]);
                let kwargs = json!({"zeta": 1, "jp": "\u{65e5}\u{672c}", "q": "it's \"q\""});
                vec![it.task("shop.echo", args).kwargs(kwargs).unwrap()]
            })
            .sql(
                "shop.echo",
                "{\"args\": [\"TAG\", \"\u{e9}\", null, true, 1.5, [1, 2], {\"b\": 1, \"a\": {\"n\": null}}],
                  \"kwargs\": {\"zeta\": 1, \"jp\": \"\u{65e5}\u{672c}\", \"q\": \"it's \\\"q\\\"\"}}",
            )
            .runs([first(json!({"result": [
                ["TAG", "\u{e9}", null, true, 1.5, [1, 2], {"b": 1, "a": {"n": null}}],
                {"zeta": 1, "jp": "\u{65e5}\u{672c}", "q": "it's \"q\""},
            ]}))]),
        scenario("by_name_unregistered")
            .django("app.send_task('other.service.task', args=(tag,), kwargs={'k': 1})")
            .rust(|it| {
                vec![
                    it.task("other.service.task", [&it.tag])
                        .kwargs(json!({"k": 1}))
                        .unwrap(),
                ]
            })
            .sql("other.service.task", r#"{"args": ["TAG"], "kwargs": {"k": 1}}"#)
            .runs([first(
                json!({"result": [["TAG"], {"k": 1}], "task": "other.service.task"}),
            )]),
        scenario("id_that_is_no_uuid")
            .django("join.apply_async((tag, 'a'), task_id=tag)")
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"task_id": "TAG"}}"#)
            .runs([json!({"result": "TAGa", "id": "TAG", "correlation_id": "TAG"})])
            .except(Producer::Rust, Then::Unsaid, "a message's id is a UUID"),
        scenario("retry_policy")
            .django("join.apply_async((tag, 'a'), retry=True, retry_policy={'max_retries': 7, 'interval_start': 0.1})")
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"retry": true, "retry_policy": {"max_retries": 7}}}"#,
            )
            .runs([first(json!({"result": "TAGa"}))])
            .except(Producer::Rust, Then::Unsaid, PRODUCERS_OWN)
            .except(Producer::Sql, Then::Dead("retry"), PRODUCERS_OWN),
        scenario("retry_false")
            .django("join.apply_async((tag, 'a'), retry=False)")
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"retry": false}}"#)
            .runs([first(json!({"result": "TAGa"}))])
            .except(Producer::Rust, Then::Unsaid, PRODUCERS_OWN)
            .except(Producer::Sql, Then::Dead("retry"), PRODUCERS_OWN),
        scenario("structlog_ctx")
            .django("in_context(lambda: join.delay(tag, 'a'))")
            .runs([first(json!({"result": "TAGa", "request_id": null}))])
            .except(Producer::Rust, Then::Unsaid, "the context stays in Django's row")
            .except(Producer::Sql, Then::Unsaid, "the context stays in Django's row")
            .except(Producer::Row, Then::Unsaid, "the context stays in Django's row"),
    ]
}
