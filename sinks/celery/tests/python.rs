//! Compares values with the output of Python and its libraries.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use sendoff_sink_celery::python::{Text, Value, read_json, saferepr_of_args, write_yaml};

fn text<'a>(case: &'a Value, name: &str) -> &'a Text {
    match case.get(name) {
        Some(Value::Text(text)) => text,
        other => panic!("{name} is {other:?}"),
    }
}

/// Parsed with this crate's own parser, because the expectations contain lone surrogates.
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

/// `fixtures/yaml/check.py` shows that PyYAML parses these texts to the same values.
#[test]
fn values_are_written_as_yaml_that_pyyaml_reads() {
    let Value::List(cases) = read_json(include_bytes!("fixtures/yaml/cases.json")).unwrap() else {
        panic!("a list of cases");
    };
    assert!(cases.len() > 100, "cases are missing");
    for case in &cases {
        let json = text(case, "json");
        let yaml = write_yaml(&read_json(json.as_bytes()).unwrap()).unwrap();
        assert_eq!(Some(yaml.as_str()), text(case, "yaml").as_str(), "{json:?}");
    }
}

#[test]
fn what_yaml_cannot_say_to_a_worker_is_refused() {
    for kind in [r#""decimal","__value__":"1.1""#, r#""time","__value__":"07:08:09""#] {
        let value = read_json(format!(r#"[{{"__type__":{kind}}}]"#).as_bytes()).unwrap();
        assert!(write_yaml(&value).unwrap_err().to_string().contains("serializer json"));
    }
}
