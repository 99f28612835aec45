//! Tasks that follow each other. Their result is text that shows the order.

use sendoff_celery::{Signature, Task};
use serde_json::json;

use super::{Scenario, first, scenario};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("link")
            .django("join.apply_async((tag, 'a'), link=join.s('b'))")
            .rust(|it| vec![it.join("a").link(it.step("b"))])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"link": [{"task": "shop.join", "args": ["b"], "kwargs": {},
                    "options": {}, "subtask_type": null, "immutable": false}]}}"#,
            )
            .runs([
                first(json!({"result": "TAGa"})),
                json!({"result": "TAGab", "root_id": "$id", "parent_id": "$id"}),
            ]),
        scenario("link_to_a_chain")
            .django("join.apply_async((tag, 'a'), link=chain(join.s('b'), join.s('c')))")
            .rust(|it| vec![it.join("a").link(Signature::chain([it.step("b"), it.step("c")]))])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"link": [{"task": "celery.chain", "args": [], "kwargs": {"tasks": [
                        {"task": "shop.join", "args": ["b"], "kwargs": {}, "options": {}, "subtask_type": null,
                         "immutable": false},
                        {"task": "shop.join", "args": ["c"], "kwargs": {}, "options": {}, "subtask_type": null,
                         "immutable": false}]},
                    "options": {}, "subtask_type": "chain", "immutable": false}]}}"#,
            )
            .runs([
                first(json!({"result": "TAGa"})),
                json!({"result": "TAGab", "id": "$b", "root_id": "$id"}),
                json!({"result": "TAGabc", "root_id": "$id", "parent_id": "$b"}),
            ]),
        scenario("link_error")
            .django("fail.apply_async((tag,), link_error=on_error.s())")
            .rust(|it| vec![it.task("shop.fail", [&it.tag]).link_error(Task::new("shop.on_error"))])
            .sql(
                "shop.fail",
                r#"{"args": ["TAG"], "options": {"link_error": [{"task": "shop.on_error", "args": [], "kwargs": {},
                    "options": {}, "subtask_type": null, "immutable": false}]}}"#,
            )
            .runs([
                first(json!({"result": "TAG", "task": "shop.fail"})),
                json!({"task": "shop.on_error", "result": ["$id", "as it should"]}),
            ]),
        scenario("chain3")
            .django("chain(join.s(tag, 'a'), join.s('b'), join.s('c')).apply_async()")
            .rust(|it| vec![it.join("a").then(it.step("b")).then(it.step("c"))])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"chain": [
                    {"task": "shop.join", "args": ["c"], "kwargs": {}, "options": {}, "subtask_type": null,
                     "immutable": false},
                    {"task": "shop.join", "args": ["b"], "kwargs": {}, "options": {}, "subtask_type": null,
                     "immutable": false}]}}"#,
            )
            .runs([
                first(json!({"result": "TAGa", "root_id": "$id"})),
                json!({"result": "TAGab", "id": "$b", "root_id": "$id", "parent_id": "$id"}),
                json!({"result": "TAGabc", "root_id": "$id", "parent_id": "$b"}),
            ]),
        scenario("immutable")
            .django("chain(join.s(tag, 'a'), join.si(tag, 'b')).apply_async()")
            .rust(|it| vec![it.join("a").then(Signature::from(it.join("b")).immutable())])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"chain": [{"task": "shop.join", "args": ["TAG", "b"], "kwargs": {},
                    "options": {}, "subtask_type": null, "immutable": true}]}}"#,
            )
            .runs([
                first(json!({"result": "TAGa"})),
                json!({"result": "TAGb", "root_id": "$id", "parent_id": "$id"}),
            ]),
        scenario("chain_into_a_group")
            .django("chain(join.s(tag, 'a'), group(join.s('b'), join.s('c'))).apply_async()")
            .rust(|it| vec![it.join("a").then(Signature::group([it.step("b"), it.step("c")]))])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"chain": [{"task": "celery.group", "args": [], "kwargs": {"tasks": [
                        {"task": "shop.join", "args": ["b"], "kwargs": {}, "options": {"group_index": 0},
                         "subtask_type": null, "immutable": false},
                        {"task": "shop.join", "args": ["c"], "kwargs": {}, "options": {"group_index": 1},
                         "subtask_type": null, "immutable": false}]},
                    "options": {}, "subtask_type": "group", "immutable": false}]}}"#,
            )
            .runs([
                first(json!({"result": "TAGa"})),
                json!({"result": "TAGab", "group": "$group", "group_index": 0, "root_id": "$id"}),
                json!({"result": "TAGac", "group": "$group", "group_index": 1, "root_id": "$id"}),
            ]),
        scenario("chain_of_group")
            .django("(join.s(tag, 'a') | group(join.s('b'), join.s('c')) | list_.s()).apply_async()")
            .rust(|it| {
                let chord = Signature::chord([it.step("b"), it.step("c")], Task::new("shop.list"));
                vec![it.join("a").then(chord)]
            })
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"chain": [{"task": "celery.chord", "args": [], "kwargs": {
                    "kwargs": {}, "body": {"task": "shop.list", "args": [], "kwargs": {}, "options": {},
                        "subtask_type": null, "immutable": false},
                    "header": {"task": "celery.group", "args": [], "kwargs": {"tasks": [
                        {"task": "shop.join", "args": ["b"], "kwargs": {}, "options": {"group_index": 0},
                         "subtask_type": null, "immutable": false},
                        {"task": "shop.join", "args": ["c"], "kwargs": {}, "options": {"group_index": 1},
                         "subtask_type": null, "immutable": false}]},
                        "options": {}, "subtask_type": "group", "immutable": false}},
                    "options": {}, "subtask_type": "chord", "immutable": false}]}}"#,
            )
            .runs([
                first(json!({"result": "TAGa"})),
                json!({"result": "TAGab", "root_id": "$id"}),
                json!({"result": "TAGac", "root_id": "$id"}),
                json!({"result": "TAGab+TAGac", "task": "shop.list"}),
            ]),
        scenario("group3")
            .django("group(join.s(tag, part) for part in 'abc').apply_async()")
            .rust(|it| Task::group(["a", "b", "c"].map(|part| it.join(part))))
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"group_id": "TAG", "group_index": 0}}"#)
            .sql("shop.join", r#"{"args": ["TAG", "b"], "options": {"group_id": "TAG", "group_index": 1}}"#)
            .sql("shop.join", r#"{"args": ["TAG", "c"], "options": {"group_id": "TAG", "group_index": 2}}"#)
            .runs([
                json!({"result": "TAGa", "id": "$id", "group": "$group", "group_index": 0}),
                json!({"result": "TAGb", "id": "$id1", "group": "$group", "group_index": 1}),
                json!({"result": "TAGc", "id": "$id2", "group": "$group", "group_index": 2}),
            ]),
        scenario("chord2")
            .django("chord([join.s(tag, 'a'), join.s(tag, 'b')])(list_.s())")
            .rust(|it| vec![Task::chord([it.join("a"), it.join("b")], Task::new("shop.list"))])
            .sql(
                "celery.chord",
                r#"{"kwargs": {"header": [
                        {"task": "shop.join", "args": ["TAG", "a"], "kwargs": {}, "options": {}, "subtask_type": null,
                         "immutable": false},
                        {"task": "shop.join", "args": ["TAG", "b"], "kwargs": {}, "options": {}, "subtask_type": null,
                         "immutable": false}],
                    "body": {"task": "shop.list", "args": [], "kwargs": {}, "options": {}, "subtask_type": null,
                        "immutable": false}}}"#,
            )
            .runs([
                json!({"result": "TAGa", "group": "$group", "group_index": 0}),
                json!({"result": "TAGb", "group": "$group", "group_index": 1}),
                json!({"result": "TAGa+TAGb", "task": "shop.list"}),
            ]),
    ]
}
