//! Only the settings define logins, and a login is sent only to the host in the settings.

use std::sync::Arc;

use sendoff::{ErrorKind, Outcome, Sink as _};
use sendoff_sink_http::{Endpoint, HeaderTemplate, HttpConfig, HttpSink};
use sendoff_wire::Secret;

use crate::message::{PAYLOAD, config, expect, message, plain, publish};
use crate::server::{Server, answer};

/// Headers that a message may try to set.
const FORBIDDEN: [&str; 19] = [
    "Authorization",
    "proxy-authorization",
    "Cookie",
    "set-cookie",
    "www-authenticate",
    "host",
    "content-length",
    "Transfer-Encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "content-encoding",
    "via",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
];

fn forger() -> sendoff::Outgoing {
    let mut message = plain(PAYLOAD);
    for name in FORBIDDEN {
        message.headers.insert(name, "forged");
    }
    message.headers.insert("x-own", "kept");
    message
}

fn with_header(url: &str, name: &str, value: &str) -> HttpConfig {
    let mut config = config(url);
    let value = HeaderTemplate::parse(value).unwrap();
    config.headers.insert(name.to_owned(), value);
    config
}

#[tokio::test]
async fn a_message_brings_neither_a_login_nor_a_cookie_nor_what_frames_a_request() {
    let server = Server::status(200).await;
    let in_url = server.url().replace("http://", "http://me:pw@");
    for (config, login) in [
        (config(&server.url()), None),
        (config(&in_url), Some("Basic bWU6cHc=")),
        (
            with_header(&server.url(), "authorization", "Bearer ours"),
            Some("Bearer ours"),
        ),
    ] {
        let before = server.seen().len();
        assert_eq!(
            publish(&HttpSink::new(config).unwrap(), forger()).await,
            Outcome::Delivered
        );
        let seen = server.seen().remove(before);
        for (name, value) in &seen.headers {
            assert_ne!(value, "forged", "{name}");
        }
        let sent = seen.headers.get("authorization").map(|value| value.to_str().unwrap());
        assert_eq!((sent, seen.header("x-own")), (login, "kept"));
        assert_eq!((&seen.body[..], seen.headers.get("cookie")), (PAYLOAD.as_bytes(), None));
    }
}

#[tokio::test]
async fn a_message_with_a_login_of_its_own_does_not_take_the_sink_down() {
    let server = Server::answering(|seen| {
        let login = seen
            .headers
            .get("authorization")
            .map(hyper::http::HeaderValue::as_bytes);
        answer(if login == Some(b"Basic bWU6cHc=") { 200 } else { 401 })
    })
    .await;
    let sink = HttpSink::new(config(&server.url().replace("http://", "http://me:pw@"))).unwrap();
    let outcomes = sink.publish(&[message(), Arc::new(forger()), message()]).await;
    assert_eq!(outcomes, vec![Outcome::Delivered; 3]);
}

#[tokio::test]
async fn a_refusal_of_one_message_while_others_are_taken_is_its_own() {
    let server = Server::answering(|seen| answer(if seen.body.ends_with(b"bad") { 401 } else { 200 })).await;
    let sink = HttpSink::new(with_header(&server.url(), "authorization", "Bearer ours")).unwrap();
    expect(
        &publish(&sink, plain("bad")).await,
        "down",
        &["401", "messages are deferred"],
    );
    assert_eq!(publish(&sink, plain(PAYLOAD)).await, Outcome::Delivered);
    expect(
        &publish(&sink, plain("bad")).await,
        "temporary",
        &["401", "another message just now"],
    );
}

#[test]
fn a_host_out_of_the_message_gets_no_login_unless_that_is_said() {
    let own_host = [
        "{header:url}",
        "https://{key}.hooks.example/",
        "https://hooks.example:{key}/",
    ];
    let refused = |config: HttpConfig, words: &[&str]| {
        let error = HttpSink::new(config.clone())
            .err()
            .expect("the settings must be refused");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let said = error.to_string();
        for word in ["url", "send_credentials_to_any_host = true"].iter().chain(words) {
            assert!(said.contains(word), "{word} in {said}");
        }
        assert!(!format!("{error:?}").contains("hunter2"), "{said}");
        // `config check` finds it without reading a secret.
        assert!(config.validate().is_err());
        let allowed = HttpConfig {
            send_credentials_to_any_host: true,
            ..config
        };
        allowed.validate().unwrap();
    };
    for url in own_host {
        for name in ["authorization", "Cookie", "x-api-key", "x-auth-token"] {
            refused(
                with_header(url, name, "hunter2"),
                &[&format!("headers.{}", name.to_lowercase())],
            );
        }
        let mut config = config(url);
        config
            .headers
            .insert("x-app".into(), Secret::Env { env: "HUNTER2".into() }.into());
        refused(config, &["headers.x-app"]);
        let mut config = crate::message::config(url);
        config.secrets = vec!["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()];
        refused(config, &["secrets"]);
        // Values from the message, and values that are not a login.
        for (name, value) in [("authorization", "Bearer {header:token}"), ("x-app", "shop")] {
            HttpSink::new(with_header(url, name, value)).unwrap();
        }
    }
    refused(config("https://me:hunter2@{key}.example/"), &["the login in it"]);
    for url in ["https://hooks.example/{key}", "https://me:hunter2@hooks.example/{key}"] {
        HttpSink::new(with_header(url, "authorization", "hunter2")).unwrap();
    }
}

#[test]
fn a_url_that_is_kept_elsewhere_is_held_to_the_same() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "{header:url}").unwrap();
    let text = format!(
        "url = {{ file = {:?} }}\nheaders = {{ authorization = 'hunter2' }}",
        file.path()
    );
    let config: HttpConfig = toml::from_str(&text).unwrap();
    config.validate().unwrap();
    let error = HttpSink::new(config).err().expect("the settings must be refused");
    assert!(error.to_string().contains("headers.authorization"), "{error}");
    assert!(Endpoint::parse("{header:url}").is_ok());
}
