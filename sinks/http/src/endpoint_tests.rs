use std::sync::Arc;

use sendoff::store::{RowRef, Table};
use sendoff::{Headers, Uuid};

use super::*;

fn message(key: &str, endpoint: &str) -> Arc<Outgoing> {
    Arc::new(Outgoing {
        id: Uuid::nil(),
        topic: "order.placed".into(),
        payload: "{}".into(),
        headers: Headers::from_iter([("endpoint", endpoint)]),
        key: Some(key.into()),
        ..Outgoing::blank(RowRef {
            table: Table::Ready,
            lane: 0,
            seq: 1,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        })
    })
}

fn url(template: &str, key: &str) -> Result<String, String> {
    let target = Endpoint::parse(template).unwrap().open().unwrap();
    target.url(&message(key, key)).map(|url| url.to_string())
}

#[test]
fn a_field_stays_within_its_place() {
    let template = "https://example.com/a/{key}/b?k={key}";
    for (key, shown) in [
        ("7", "https://example.com/a/7/b?k=7"),
        ("../x", "https://example.com/a/..%2Fx/b?k=..%2Fx"),
        ("a&b=c#d", "https://example.com/a/a%26b%3Dc%23d/b?k=a%26b%3Dc%23d"),
        ("ü ?", "https://example.com/a/%C3%BC%20%3F/b?k=%C3%BC%20%3F"),
        ("%2e%2e", "https://example.com/a/%252e%252e/b?k=%252e%252e"),
    ] {
        assert_eq!(url(template, key).unwrap(), shown);
    }
    for key in [".", "..", "..."] {
        assert!(url(template, key).unwrap_err().contains("dots"), "{key}");
    }
}

#[test]
fn a_field_in_the_host_cannot_bring_another_host() {
    let template = "https://{key}.hooks.example.com/";
    assert_eq!(url(template, "shop-7").unwrap(), "https://shop-7.hooks.example.com/");
    for key in [
        "evil.example/",
        "evil.example#",
        "a@evil.example",
        "evil.example:80",
        "a\\b",
    ] {
        let filled = url(template, key);
        assert!(
            filled.as_ref().is_err_and(|why| why.contains("cannot be used")),
            "{filled:?}"
        );
    }
}

#[test]
fn a_url_that_is_one_field_is_taken_as_it_is() {
    assert_eq!(
        url("{header:endpoint}", "https://a.example/x?y=1").unwrap(),
        "https://a.example/x?y=1"
    );
    for other in ["ftp://a.example/", "a.example", "", "https://"] {
        assert!(url("{header:endpoint}", other).is_err(), "{other}");
    }
}

#[test]
fn a_text_that_is_no_url_is_refused_without_being_quoted() {
    for text in [
        "hunter2",
        "ftp://hunter2@host/",
        "hunter2{key}",
        "https://hunter2{",
        "https://h/{hunter2}",
        "https://:hunter2@",
    ] {
        let error = Endpoint::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn what_is_shown_holds_no_secret() {
    for (text, shown) in [
        ("https://me:hunter2@h/p?t=hunter2", "https://me:***@h/p?***"),
        ("https://me:hunter2@h/{topic}?t=hunter2", "https://***@h/{topic}?***"),
        ("https://h/{topic}", "https://h/{topic}"),
        ("https://hunter2@h/", "https://***@h/"),
        ("https://hunter2@h/{topic}", "https://***@h/{topic}"),
    ] {
        let endpoint = Endpoint::parse(text).unwrap();
        assert_eq!(
            (endpoint.to_string(), format!("{endpoint:?}")),
            (shown.to_owned(), shown.to_owned())
        );
    }
    assert_eq!(
        origin(&Url::parse("https://me:hunter2@h:8/hunter2").unwrap()),
        "https://h:8"
    );
}

#[test]
fn the_host_of_a_template_is_fixed_if_it_ends_before_the_first_field() {
    for (template, origin) in [
        ("https://h.example:8443/{topic}", Some("https://h.example:8443/")),
        ("https://h.example?t={topic}", Some("https://h.example/")),
        ("https://me:pw@h.example/{topic}", Some("https://me:pw@h.example/")),
        ("https://h.example/a", Some("https://h.example/a")),
        ("https://h.example{topic}", None),
        ("https://h.example:80{topic}/", None),
        ("https://{key}.example/", None),
        ("https://me:{key}@h.example/", None),
        ("{header:endpoint}", None),
    ] {
        let target = Endpoint::parse(template).unwrap().open().unwrap();
        assert_eq!(target.origin.as_ref().map(Url::as_str), origin, "{template}");
    }
    assert!(Endpoint::parse("https:///{topic}").is_err(), "no host");
}

#[test]
fn a_field_that_is_missing_is_told_without_the_rest_of_the_url() {
    let target = Endpoint::parse("https://h/{aggregate_id}?t=hunter2")
        .unwrap()
        .open()
        .unwrap();
    let why = target.url(&message("a", "b")).unwrap_err();
    assert!(why.contains("no aggregate_id") && !why.contains("hunter2"), "{why}");
}

#[test]
fn a_url_can_be_kept_elsewhere() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "https://h/hunter2\n").unwrap();
    let endpoint = Endpoint(Kept::Elsewhere(Secret::File {
        file: file.path().into(),
    }));
    assert!(!format!("{endpoint:?}").contains("hunter2"));
    assert_eq!(endpoint.open().unwrap().fixed.unwrap().as_str(), "https://h/hunter2");
}
