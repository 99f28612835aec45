//! From a message to a PUBLISH packet.

use bytes::{BufMut, BytesMut};
use sendoff::{Delivery, Outcome};
use sendoff_wire::escape::{ENCODED, header_value};
use sendoff_wire::{Encoded, Names};

use crate::properties::{self, TooLong, put_text, put_varint, varint_len};
use crate::{MqttConfig, Version, error, topic};

/// CloudEvents' attributes, as the MQTT binding writes them: with nothing in front.
const NAMES: Names = Names { prefix: "" };
/// The protocol has no room for a larger packet.
const LARGEST: usize = 268_435_455;

/// Appends a message; `limit` is the largest packet that the broker takes. On a refusal nothing is appended.
pub(crate) fn put_publish(
    config: &MqttConfig,
    delivery: &Delivery,
    id: u16,
    limit: Option<usize>,
    out: &mut BytesMut,
) -> Result<(), Outcome> {
    let filled = config.topic.fill_named(delivery, topic::escape);
    let topic = filled.map_err(|unfilled| Outcome::Permanent(unfilled.to_string().into()))?;
    topic::check(&topic).map_err(|why| error::bad_topic(&topic, why))?;
    let encoded = config.format().encode(delivery, &config.source, NAMES);
    let properties = match config.version {
        Version::V5 => Some(properties(config, &encoded).map_err(|TooLong(size)| error::header_too_long(size))?),
        Version::V311 => None,
    };
    let with_properties = properties
        .as_ref()
        .map_or(0, |block| varint_len(block.len()) + block.len());
    let remaining = 2 + topic.len() + 2 + with_properties + encoded.body.len();
    let size = 1 + varint_len(remaining) + remaining;
    let limit = limit.unwrap_or(LARGEST).min(LARGEST);
    if size > limit {
        return Err(error::too_large(size, limit));
    }
    out.reserve(size);
    out.put_u8(0x30 | u8::from(config.qos) << 1 | u8::from(config.retain));
    put_varint(remaining, out);
    // Its length was checked with the topic.
    let _ = put_text(&topic, out);
    out.put_u16(id);
    if let Some(block) = properties {
        put_varint(block.len(), out);
        out.put_slice(&block);
    }
    out.put_slice(&encoded.body);
    Ok(())
}

fn properties(config: &MqttConfig, encoded: &Encoded<'_>) -> Result<BytesMut, TooLong> {
    let mut block = BytesMut::with_capacity(256);
    if let Some(expiry) = config.message_expiry {
        block.put_u8(properties::MESSAGE_EXPIRY);
        block.put_u32(u32::try_from(expiry.as_secs()).unwrap_or(u32::MAX));
    }
    block.put_u8(properties::CONTENT_TYPE);
    put_text(&header_value(&encoded.content_type), &mut block)?;
    let mut encoded_names = String::new();
    for (name, value) in encoded.headers.iter().filter(|(name, _)| name != ENCODED) {
        let (safe_name, safe_value) = (header_value(name), header_value(value));
        if safe_value != *value {
            if !encoded_names.is_empty() {
                encoded_names.push(',');
            }
            encoded_names.push_str(&safe_name);
        }
        put_pair(&safe_name, &safe_value, &mut block)?;
    }
    if !encoded_names.is_empty() {
        put_pair(ENCODED, &encoded_names, &mut block)?;
    }
    Ok(block)
}

fn put_pair(name: &str, value: &str, block: &mut BytesMut) -> Result<(), TooLong> {
    block.put_u8(properties::USER_PROPERTY);
    put_text(name, block)?;
    put_text(value, block)
}
