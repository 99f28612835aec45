//! Compares this crate's output for rows of `django-celery-outbox` with the output of their own relay.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod capture;

use capture::model::redis_commands;
use capture::rows::{Rows, config};
use capture::{amqp_commands, as_tuple, captures, comparable_envelope, encode, model, readable};
use jiff::{SignedDuration, Timestamp};
use sendoff::Uuid;
use sendoff_sink_celery::{CeleryMessage, Encoder};
use serde_json::{Value, json};

fn encoder(variant: Option<&str>, origin: &str) -> Encoder {
    Encoder::new(&config(variant, origin)).unwrap()
}

/// When the captured relay sent: computed from the remaining time until the task expires or is due.
fn sent_at(rows: &Rows, published: &Value) -> Timestamp {
    let properties = &published["properties"];
    let headers = &properties["headers"];
    let text = |value: &Value| value["v"].as_str().or(value.as_str()).map(str::to_owned);
    if let (Some(expires), Some(millis)) = (text(&headers["expires"]), properties["expiration"].as_str()) {
        let left = SignedDuration::from_millis(millis.parse().unwrap());
        return expires.parse::<Timestamp>().unwrap() - left;
    }
    let routing_key = published["args"]["routing_key"].as_str().unwrap_or_default();
    let bits: Vec<&str> = routing_key.split('.').take(28).collect();
    match rows.outbox_rows[0].eta() {
        Some(eta) if bits.len() == 28 => {
            let delay = bits
                .iter()
                .fold(0_i64, |delay, bit| delay << 1 | i64::from(*bit == "1"));
            eta - SignedDuration::from_millis(delay * 1000 + 500)
        }
        _ => "2026-11-15T19:00:00Z".parse().unwrap(),
    }
}

/// The captured relay rewrites the chord of this chain. Here it stays as the producer wrote it.
const REWRITTEN: &str = "chain_of_group";

fn assert_chain_is_untouched(rows: &Rows, body: &str) {
    let options: Value = serde_json::from_str(rows.outbox_rows[0].options.get()).unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert!(options["chain"].is_array());
    assert_eq!(body[2]["chain"], options["chain"]);
}

fn messages(rows: &Rows, encoder: &Encoder, at: Timestamp) -> Vec<CeleryMessage> {
    rows.outbox_rows
        .iter()
        .map(|row| encode(encoder, &row.message(), at, at))
        .collect()
}

#[test]
fn rows_reach_rabbitmq_as_from_their_own_relay() {
    let mut compared = 0;
    for (name, text) in captures("outbox")
        .into_iter()
        .filter(|(name, _)| name.starts_with("amqp_"))
    {
        let rows: Rows = serde_json::from_str(&text).unwrap();
        let capture: Value = serde_json::from_str(&text).unwrap();
        let published = |command: &&Value| command["method"] == "basic.publish";
        // With confirms, an unroutable message was tried more than once.
        let mut expected = amqp_commands(&capture);
        let first = expected.iter().find(published).unwrap();
        let at = sent_at(&rows, first);
        let encoder = encoder(
            rows.variant.as_deref(),
            first["properties"]["headers"]["origin"]["v"].as_str().unwrap(),
        );
        let mut actual = model::amqp_commands(&messages(&rows, &encoder, at));
        if rows.variant.as_deref() == Some("confirm") {
            expected.dedup();
            expected.truncate(actual.len());
        }
        assert_eq!(actual.len(), expected.len(), "{name}: number of commands");
        for (command, ours) in expected.iter_mut().zip(&mut actual) {
            if command["method"] != "basic.publish" {
                continue;
            }
            command["properties"].as_object_mut().unwrap().remove("reply_to");
            let headers = &mut command["properties"]["headers"];
            headers["argsrepr"]["v"] = as_tuple(headers["argsrepr"]["v"].as_str().unwrap()).into();
            if rows.variant.as_deref() == Some("quorum") && headers["eta"]["v"].is_string() {
                // Celery computes it again for the delay; the row's own value is right.
                headers["eta"] = ours["properties"]["headers"]["eta"].clone();
                let eta = headers["eta"]["v"].as_str().unwrap().parse::<Timestamp>().unwrap();
                assert_eq!(Some(eta), rows.outbox_rows[0].eta());
            }
            if rows.vector == "expires_datetime" {
                command["properties"].as_object_mut().unwrap().remove("expiration");
            }
            for each in [&mut *command, &mut *ours] {
                each["body_b64"] = readable(each["body_b64"].as_str().unwrap()).into();
            }
            if rows.vector == REWRITTEN {
                assert_chain_is_untouched(&rows, ours["body_b64"].as_str().unwrap());
                command["body_b64"] = ours["body_b64"].clone();
            }
        }
        assert_eq!(
            serde_json::to_string_pretty(&actual).unwrap(),
            serde_json::to_string_pretty(&expected).unwrap(),
            "{name}"
        );
        compared += 1;
    }
    assert_eq!(compared, 49, "number of compared captures");
}

#[test]
fn rows_reach_redis_as_from_their_own_relay() {
    let mut compared = 0;
    for (name, text) in captures("outbox")
        .into_iter()
        .filter(|(name, _)| name.starts_with("redis_"))
    {
        let rows: Rows = serde_json::from_str(&text).unwrap();
        assert_eq!(rows.broker, "redis");
        let capture: Value = serde_json::from_str(&text).unwrap();
        let expected: Vec<Vec<String>> = serde_json::from_value(capture["redis_commands"].clone()).unwrap();
        let pushed: Vec<Value> = expected
            .iter()
            .filter(|command| command[0] == "LPUSH")
            .map(|command| serde_json::from_str(&command[2]).unwrap())
            .collect();
        let none = Value::Null;
        let first = pushed.first().unwrap_or(&none);
        let at = sent_at(
            &rows,
            &json!({"properties": {"headers": first["headers"], "expiration": first["properties"]["expiration"]}}),
        );
        let encoder = encoder(None, first["headers"]["origin"].as_str().unwrap_or("x"));
        let tag = |push: &Value| Uuid::parse_str(push["properties"]["delivery_tag"].as_str().unwrap()).unwrap();
        let tags: Vec<Uuid> = pushed.iter().map(tag).collect();
        let actual = redis_commands(&encoder, &messages(&rows, &encoder, at), &tags);
        let comparable =
            |commands: &[Vec<String>]| -> Vec<Value> { commands.iter().map(|each| comparable(each)).collect() };
        let (actual, mut expected) = (comparable(&actual), comparable(&expected));
        if rows.vector == REWRITTEN {
            let (ours, theirs) = (actual.last().unwrap(), expected.last_mut().unwrap());
            assert_chain_is_untouched(&rows, ours[2]["body"].as_str().unwrap());
            theirs[2]["body"] = ours[2]["body"].clone();
        }
        assert_eq!(actual, expected, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 42, "number of compared captures");
}

/// A command with a parsed envelope.
fn comparable(command: &[String]) -> Value {
    match command[0].as_str() {
        "LPUSH" => json!([command[0], command[1], comparable_envelope(&command[2])]),
        _ => json!(command),
    }
}
