//! Signatures, checked by the reference implementation.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Outcome;
use sendoff_sink_http::HttpSink;
use sendoff_wire::Format;
use standardwebhooks::Webhook;

use crate::message::{PAYLOAD, config, plain, publish};
use crate::server::{Seen, Server};

pub(crate) const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDNnTSJLhHQ1E=";

pub(crate) fn verified(seen: &Seen, secret: &str) -> bool {
    Webhook::new(secret).unwrap().verify(&seen.body, &seen.headers).is_ok()
}

#[tokio::test]
async fn a_receiver_can_verify_every_format() {
    for format in [
        Format::Raw,
        Format::Envelope,
        Format::CloudEvents,
        Format::CloudEventsBinary,
    ] {
        let server = Server::status(200).await;
        let mut config = config(&server.url());
        config.secrets = vec![OLD.into()];
        config.format = format;
        let message = plain(PAYLOAD);
        let id = message.id.to_string();
        assert_eq!(
            publish(&HttpSink::new(config).unwrap(), message).await,
            Outcome::Delivered
        );
        let seen = server.only();
        assert_eq!(seen.header("webhook-id"), id);
        assert!(verified(&seen, OLD), "{format:?}");
        assert!(!verified(&seen, NEW), "another secret must not verify");
        let mut changed = seen.clone();
        changed.body = [&seen.body[..], b" "].concat().into();
        assert!(!verified(&changed, OLD), "another body must not verify");
    }
}

#[tokio::test]
async fn while_a_secret_is_changed_both_verify() {
    let server = Server::status(200).await;
    let mut config = config(&server.url());
    config.secrets = vec![NEW.into(), OLD.into()];
    assert_eq!(
        publish(&HttpSink::new(config).unwrap(), plain(PAYLOAD)).await,
        Outcome::Delivered
    );
    let seen = server.only();
    assert_eq!(seen.header("webhook-signature").split(' ').count(), 2);
    assert!(verified(&seen, OLD) && verified(&seen, NEW));
}

#[tokio::test]
async fn a_binary_body_is_signed_as_it_is() {
    let server = Server::status(200).await;
    let mut config = config(&server.url());
    config.secrets = vec![OLD.into()];
    let mut message = plain("");
    message.payload = vec![0, 159, 146, 150, b'.', 0].into();
    message.content_type = Some("application/octet-stream".into());
    assert_eq!(
        publish(&HttpSink::new(config).unwrap(), message).await,
        Outcome::Delivered
    );
    let seen = server.only();
    assert_eq!(seen.header("content-type"), "application/octet-stream");
    assert_eq!(&seen.body[..], [0, 159, 146, 150, b'.', 0]);
    // The reference implementation takes text only.
    let key = hmac::Key::new(
        hmac::HMAC_SHA256,
        &STANDARD.decode(OLD.strip_prefix("whsec_").unwrap()).unwrap(),
    );
    let signed = [
        seen.header("webhook-id").as_bytes(),
        b".",
        seen.header("webhook-timestamp").as_bytes(),
        b".",
        &seen.body[..],
    ]
    .concat();
    let signature = seen.header("webhook-signature").strip_prefix("v1,").unwrap();
    hmac::verify(&key, &signed, &STANDARD.decode(signature).unwrap()).unwrap();
}

#[tokio::test]
async fn without_a_secret_there_is_an_id_and_no_signature() {
    let server = Server::status(200).await;
    assert_eq!(
        publish(&HttpSink::new(config(&server.url())).unwrap(), plain(PAYLOAD)).await,
        Outcome::Delivered
    );
    let seen = server.only();
    assert!(seen.headers.contains_key("webhook-id") && seen.headers.contains_key("webhook-timestamp"));
    assert!(!seen.headers.contains_key("webhook-signature"));
}
