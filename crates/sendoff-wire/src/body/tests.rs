use sendoff::store::{RowRef, Table};
use sendoff::{Headers, Uuid};

use super::*;

/// A header value with the special characters of every format.
const NASTY: &str = "a\"}, \"evil\": {\"\\\r\n&<b>' =ü";

fn message(payload: &[u8]) -> Outgoing {
    Outgoing {
        id: Uuid::nil(),
        topic: "order.placed".into(),
        payload: payload.to_vec().into(),
        headers: Headers::from_iter([("tenant", NASTY)]),
        schema_version: Some(3),
        ..Outgoing::blank(RowRef {
            table: Table::Ready,
            lane: 0,
            seq: 1,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        })
    }
}

fn filled(text: &str, content_type: &str, payload: &[u8]) -> String {
    let body = BodyTemplate::new(text, content_type).unwrap();
    String::from_utf8(body.fill(&message(payload)).unwrap()).unwrap()
}

#[test]
fn json_is_written_as_it_is_and_no_field_breaks_out_of_its_place() {
    let text = r#"{"a": "<{header:tenant}>", "b": {header:tenant}, "c": {payload}, "d": "{payload}",
        "v": {schema_version}, "k": {key|null}, "l": "{key|none}", "{topic}": {}, "\"": {created_at}}"#;
    let body = filled(text, "application/json; charset=utf-8", br#" {"total": 12.50} "#);
    let json: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(json["a"], format!("<{NASTY}>"));
    assert_eq!(json["b"], NASTY);
    assert_eq!(json["d"], " {\"total\": 12.50} ");
    assert_eq!(
        (&json["v"], &json["k"], &json["l"]),
        (&3.into(), &().into(), &"none".into())
    );
    assert_eq!(json["order.placed"], serde_json::json!({}));
    assert_eq!(json["\""], "1970-01-01T00:00:00.000000Z");
    assert!(
        body.contains(r#""c": {"total": 12.50}"#),
        "digits must not change: {body}"
    );
    assert_eq!(json.as_object().unwrap().len(), 9, "{body}");
}

#[test]
fn a_brace_before_a_letter_is_written_twice() {
    assert_eq!(
        filled("{{a} { } {{ {topic}}", "text/plain", b""),
        "{a} { } {{ order.placed}"
    );
}

#[test]
fn forms_and_markup_are_escaped_and_other_bodies_are_not() {
    let form = filled(
        "a={header:tenant}&b={payload}",
        "application/x-www-form-urlencoded",
        b"x y&\xff",
    );
    let pairs: Vec<(String, String)> = url::form_urlencoded::parse(form.as_bytes()).into_owned().collect();
    assert_eq!(pairs[0], ("a".to_owned(), NASTY.to_owned()));
    assert!(form.ends_with("&b=x+y%26%FF") && pairs.len() == 2, "{form}");
    let markup = filled("<a b=\"{header:tenant}\">{payload}</a>", "application/soap+xml", b"<x>");
    assert_eq!(
        markup,
        "<a b=\"a&quot;}, &quot;evil&quot;: {&quot;\\\r\n&amp;&lt;b&gt;&#39; =ü\">&lt;x&gt;</a>"
    );
    assert_eq!(
        filled("{payload}{header:tenant}", "text/plain", b"<x>"),
        format!("<x>{NASTY}")
    );
}

#[test]
fn a_payload_that_does_not_fit_is_told_with_advice() {
    for (text, content_type, payload, word) in [
        (r#"{"a": {payload}}"#, "application/json", &b"hunter2"[..], "quotes"),
        (r#"{"a": {payload}}"#, "application/json", b"", "quotes"),
        (r#"{"a": "{payload}"}"#, "application/json", b"\xff", "not UTF-8"),
        ("<a>{payload}</a>", "text/xml", b"\xff", "not UTF-8"),
        (
            "{key}",
            "text/plain",
            b"",
            "no key, and the sink's body template needs it",
        ),
    ] {
        let body = BodyTemplate::new(text, content_type).unwrap();
        let reason = body.fill(&message(payload)).unwrap_err();
        assert!(
            reason.text().contains(word) && reason.text().contains('(') && !reason.text().contains("hunter2"),
            "{reason:?}"
        );
    }
}

#[test]
fn a_template_that_cannot_work_is_refused_without_being_quoted() {
    for (text, word) in [
        (r#"{"hunter2": {topic}"#, "not JSON"),
        (r#"{{"hunter2": {topic}}}"#, "not JSON"),
        (r#"{"hunter2": 1 {key}}"#, "not JSON"),
        (r#"{"hunter2": {key|hunter2}}"#, "default"),
        (r#"{"hunter2": "{tpoic}"}"#, "known field"),
        (r#"{"hunter2": "{topic"#, "not closed"),
        ("hunter2", "not JSON"),
        ("", "not JSON"),
    ] {
        let error = BodyTemplate::new(text, "application/json").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let said = error.to_string();
        assert!(
            said.contains(word) && said.contains("{topic}") && !said.contains("hunter2"),
            "{said}"
        );
    }
    let body = BodyTemplate::new(r#"{"a": "hunter2"}"#, "application/json").unwrap();
    assert!(!format!("{body:?}").contains("hunter2"));
}
