//! Values against what Python and its libraries make of them.

use sendoff_sink_celery::python::{Text, Value, read_json, saferepr_of_args};

fn text<'a>(case: &'a Value, name: &str) -> &'a Text {
    match case.get(name) {
        Some(Value::Text(text)) => text,
        other => panic!("{name} is {other:?}"),
    }
}

/// Read with this crate's own parser: the expectations hold halves of surrogate pairs.
#[test]
fn arguments_are_printed_as_celery_prints_them() {
    let Value::List(cases) = read_json(include_bytes!("fixtures/repr/cases.json")).unwrap() else {
        panic!("a list of cases");
    };
    assert!(cases.len() > 500, "cases are missing");
    for case in &cases {
        let json = text(case, "args");
        let value = read_json(json.as_bytes()).unwrap();
        let Value::List(args) = &value else { panic!("{json:?}") };
        assert_eq!(&saferepr_of_args(args, 3), text(case, "repr"), "{json:?}");
    }
}
