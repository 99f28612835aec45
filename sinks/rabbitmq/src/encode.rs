//! Encodes a message for RabbitMQ.

use std::time::UNIX_EPOCH;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use sendoff::{Outgoing, Reason};
use sendoff_wire::{Names, Template};

use crate::RabbitMqConfig;
use crate::publisher::Prepared;

const NAMES: Names = Names { prefix: "cloudEvents:" };

/// Delivery modes: stored on disk, or in memory only.
const PERSISTENT: u8 = 2;
const TRANSIENT: u8 = 1;

/// Encodes a message. The error is the reason why that can never work.
pub(crate) fn encode(config: &RabbitMqConfig, outgoing: &Outgoing) -> Result<Prepared, Reason> {
    let encoded = config.format.encode(outgoing, &config.source, NAMES);
    let mut headers = FieldTable::default();
    for (name, value) in &encoded.headers {
        headers.insert(short("name of a header", name)?, long(value));
    }
    for (name, template) in &config.headers {
        let value = fill(template, outgoing)?;
        if !value.is_empty() {
            headers.insert(short("name of a header", name)?, long(&value));
        }
    }
    let seconds = outgoing
        .created_at
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let mut properties = BasicProperties::default()
        .with_message_id(short("id", &outgoing.id.to_string())?)
        .with_timestamp(seconds)
        .with_content_type(short("content type", &encoded.content_type)?)
        .with_type(short("topic", &outgoing.topic)?)
        .with_app_id(short("app_id", &config.app_id)?)
        .with_delivery_mode(if config.persistent { PERSISTENT } else { TRANSIENT })
        .with_headers(headers);
    if outgoing.priority != 0 {
        let priority = u8::try_from(outgoing.priority.clamp(0, config.max_priority.into())).unwrap_or(0);
        properties = properties.with_priority(priority);
    }
    if let Some(template) = &config.correlation_id {
        let correlation_id = fill(template, outgoing)?;
        if !correlation_id.is_empty() {
            properties = properties.with_correlation_id(short("correlation_id", &correlation_id)?);
        }
    }
    Ok(Prepared {
        exchange: short("exchange", &fill(&config.exchange, outgoing)?)?,
        routing_key: short("routing key", &fill(&config.routing_key, outgoing)?)?,
        properties,
        body: encoded.body,
    })
}

fn fill(template: &Template, outgoing: &Outgoing) -> Result<String, Reason> {
    template.fill(outgoing).map_err(|unfilled| unfilled.to_string().into())
}

fn long(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

fn short(what: &str, text: &str) -> Result<ShortString, Reason> {
    ShortString::try_new(text).map_err(|_| {
        let bytes = text.len();
        format!("the {what} has {bytes} bytes and AMQP allows 255 (emit the message with a shorter one)").into()
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use sendoff::Uuid;
    use sendoff::store::{RowRef, Table};

    use super::*;

    fn outgoing() -> Outgoing {
        Outgoing {
            id: Uuid::from_u128(7),
            topic: "order.placed".into(),
            payload: "{}".into(),
            key: Some("k".into()),
            created_at: SystemTime::UNIX_EPOCH + Duration::from_millis(1500),
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

    fn config(more: &str) -> RabbitMqConfig {
        toml::from_str(&format!("url = 'amqp://host'\nexchange = 'x'\n{more}")).unwrap()
    }

    #[test]
    fn properties_carry_the_fields_of_the_message() {
        let message = encode(&config("correlation_id = '{key}'"), &outgoing()).unwrap();
        let properties = &message.properties;
        assert_eq!(message.routing_key.as_str(), "order.placed");
        assert_eq!(
            properties.message_id().as_ref().unwrap().as_str(),
            Uuid::from_u128(7).to_string()
        );
        assert_eq!(properties.kind().as_ref().unwrap().as_str(), "order.placed");
        assert_eq!(properties.content_type().as_ref().unwrap().as_str(), "application/json");
        assert_eq!(properties.app_id().as_ref().unwrap().as_str(), "sendoff");
        assert_eq!(properties.correlation_id().as_ref().unwrap().as_str(), "k");
        assert_eq!(
            (*properties.timestamp(), *properties.delivery_mode()),
            (Some(1), Some(PERSISTENT))
        );
        assert_eq!((properties.priority(), properties.expiration()), (&None, &None));
    }

    #[test]
    fn priorities_are_brought_into_range() {
        let priority = |priority, config: &RabbitMqConfig| {
            let outgoing = Outgoing { priority, ..outgoing() };
            *encode(config, &outgoing).unwrap().properties.priority()
        };
        let nine = config("");
        assert_eq!(
            [-3, 5, 9, 10, 300].map(|given| priority(given, &nine)),
            [0, 5, 9, 9, 9].map(Some)
        );
        let all = config("max_priority = 255");
        assert_eq!([10, 300].map(|given| priority(given, &all)), [10, 255].map(Some));
    }

    #[test]
    fn a_name_that_amqp_has_no_room_for_is_refused_with_its_size() {
        let topic = "t".repeat(256);
        let reason = encode(&config(""), &Outgoing { topic, ..outgoing() }).unwrap_err();
        assert!(
            reason.text().contains("topic has 256 bytes and AMQP allows 255"),
            "{reason:?}"
        );
        let longest = encode(
            &config(""),
            &Outgoing {
                topic: "t".repeat(255),
                ..outgoing()
            },
        );
        assert!(longest.is_ok());
    }

    #[test]
    fn a_templated_header_that_comes_out_empty_is_left_out() {
        let config = config("headers = { tenant = '{header:tenant|}', topic = 'x-{topic}' }");
        let message = encode(&config, &outgoing()).unwrap();
        let headers = message.properties.headers().as_ref().unwrap();
        assert!(!headers.contains_key("tenant"));
        assert_eq!(headers.inner()["topic"], long("x-order.placed"));
    }
}
