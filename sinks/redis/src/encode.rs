//! Encodes a message as a Redis command.

use std::borrow::Cow;

use redis::Cmd;
use sendoff::{Outcome, Outgoing};
use sendoff_wire::{Encoded, Format, Names};

use crate::config::{End, Mode};
use crate::{RedisConfig, error};

/// The prefix of CloudEvents attributes, as in Kafka: a colon or a dash would need quotes in scripts.
const ATTRIBUTE: &str = "ce_";

/// The prefix of the message's headers, so that a header cannot replace another field.
const HEADER: &str = "header:";

/// Fields of a stream's entry with their own names.
const FIELDS: [(&str, &str); 7] = [
    (Format::ID, "id"),
    (Format::TOPIC, "topic"),
    (Format::KEY, "key"),
    (Format::CREATED_AT, "created_at"),
    (Format::AGGREGATE_TYPE, "aggregate_type"),
    (Format::AGGREGATE_ID, "aggregate_id"),
    (Format::SCHEMA_VERSION, "schema_version"),
];

/// The command that delivers a message.
///
/// # Errors
/// The outcome of a message that can never be sent.
pub(crate) fn command(config: &RedisConfig, outgoing: &Outgoing) -> Result<Cmd, Outcome> {
    let key = match config.key.fill(outgoing) {
        Ok(key) if !key.is_empty() => key,
        Ok(_) => return Err(error::no_key()),
        Err(unfilled) => return Err(Outcome::Permanent(unfilled.to_string().into())),
    };
    let encoded = config
        .format()
        .encode(outgoing, &config.source, Names { prefix: ATTRIBUTE });
    // Redis' limit applies to each argument of a command, and in a stream every header is an argument.
    let headers = encoded.headers.iter().filter(|_| config.mode == Mode::Stream);
    let headers = headers.map(|(name, value)| (HEADER.len() + name.len()).max(value.len()));
    let largest = headers.fold(encoded.body.len(), usize::max);
    if largest > config.max_message_bytes {
        return Err(error::too_large(largest, config.max_message_bytes));
    }
    Ok(match config.mode {
        Mode::Stream => entry(config, &key, &encoded),
        Mode::List => {
            let push = match config.push {
                End::Left => "LPUSH",
                End::Right => "RPUSH",
            };
            plain(push, &key, &encoded)
        }
        Mode::PubSub => plain("PUBLISH", &key, &encoded),
    })
}

fn plain(name: &str, key: &str, encoded: &Encoded<'_>) -> Cmd {
    let mut command = Cmd::with_capacity(3, name.len() + key.len() + encoded.body.len());
    command.arg(name).arg(key).arg(&encoded.body[..]);
    command
}

fn entry(config: &RedisConfig, key: &str, encoded: &Encoded<'_>) -> Cmd {
    let fields = encoded.headers.len() + 2;
    let mut command = Cmd::with_capacity(2 * fields + 6, encoded.body.len() + 64 * fields);
    command.arg("XADD").arg(key);
    if let Some(most) = config.max_len {
        command
            .arg("MAXLEN")
            .arg(if config.exact { "=" } else { "~" })
            .arg(most);
    }
    command.arg("*");
    for (name, value) in &encoded.headers {
        command.arg(&*field(name)).arg(&**value);
    }
    command.arg("content_type").arg(&*encoded.content_type);
    command.arg("payload").arg(&encoded.body[..]);
    command
}

fn field(name: &str) -> Cow<'_, str> {
    let known = FIELDS.iter().find(|(header, _)| *header == name);
    match known {
        Some((_, field)) => (*field).into(),
        None if name.starts_with(ATTRIBUTE) => name.into(),
        None => format!("{HEADER}{name}").into(),
    }
}

#[cfg(test)]
mod tests {

    use redis::Arg;
    use sendoff::Uuid;
    use sendoff::store::{RowRef, Table};

    use super::*;

    fn outgoing() -> Outgoing {
        Outgoing {
            id: Uuid::nil(),
            topic: "order.placed".into(),
            payload: "{}".into(),
            headers: [("tenant", "7"), ("id", "false")].into_iter().collect(),
            key: Some("k".into()),
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

    fn words(config: &str) -> Vec<String> {
        let config: RedisConfig = toml::from_str(&format!("url = 'redis://a'\n{config}")).unwrap();
        config.validate().unwrap();
        let word = |arg: Arg<&[u8]>| match arg {
            Arg::Simple(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            _ => "?".to_owned(),
        };
        command(&config, &outgoing()).unwrap().args_iter().map(word).collect()
    }

    #[test]
    fn an_entry_has_a_field_for_everything() {
        let id = Uuid::nil().to_string();
        assert_eq!(
            words("max_len = 1000"),
            [
                "XADD",
                "order.placed",
                "MAXLEN",
                "~",
                "1000",
                "*",
                "id",
                &id,
                "topic",
                "order.placed",
                "key",
                "k",
                "created_at",
                "1970-01-01T00:00:00.000000Z",
                "header:id",
                "false",
                "header:tenant",
                "7",
                "content_type",
                "application/json",
                "payload",
                "{}"
            ]
        );
        assert_eq!(words("max_len = 5\nexact = true")[2..6], ["MAXLEN", "=", "5", "*"]);
    }

    #[test]
    fn attributes_of_an_event_are_fields() {
        let words = words("format = 'cloudevents-binary'");
        let type_at = words.iter().position(|word| word == "ce_type").unwrap();
        assert_eq!(words[type_at + 1], "order.placed");
    }

    #[test]
    fn lists_and_channels_take_the_body_alone() {
        let list = words("mode = 'list'\nkey = 'jobs:{topic}'");
        assert_eq!(list[..2], ["RPUSH", "jobs:order.placed"]);
        assert!(list[2].starts_with("{\"id\":") && list.len() == 3);
        assert_eq!(words("mode = 'list'\npush = 'left'")[0], "LPUSH");
        assert_eq!(words("mode = 'pubsub'")[0], "PUBLISH");
    }

    #[test]
    fn what_can_never_be_sent_is_permanent() {
        for (config, word) in [
            ("key = '{aggregate_id}'", "aggregate_id"),
            ("key = '{header:none|}'", "empty"),
            ("max_message_bytes = 1", "1 byte"),
            ("max_message_bytes = 30", "36 bytes"),
        ] {
            let config: RedisConfig = toml::from_str(&format!("url = 'redis://a'\n{config}")).unwrap();
            match command(&config, &outgoing()) {
                Err(Outcome::Permanent(reason)) => assert!(reason.text().contains(word), "{}", reason.text()),
                other => panic!("{:?}", other.map(drop)),
            }
        }
    }
}
