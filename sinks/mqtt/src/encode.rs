//! Encodes a message as a PUBLISH packet.

use bytes::BytesMut;
use mqtt_protocol_core::mqtt::packet as mqtt;
use mqtt_protocol_core::mqtt::packet::{
    GenericPacketTrait as _, Packet, Properties, PropertiesSize as _, v3_1_1, v5_0,
};
use mqtt_protocol_core::mqtt::result_code::MqttError;
use sendoff::{Outcome, Outgoing};
use sendoff_wire::escape::{Encodings, is_safe};
use sendoff_wire::{Encoded, Names};

use crate::packet::put;
use crate::{MqttConfig, Qos, Version, error, topic};

/// CloudEvents attributes have no prefix in the MQTT binding.
const NAMES: Names = Names { prefix: "" };
/// The largest packet of the protocol.
const LARGEST: usize = 268_435_455;
/// The most bytes of a packet in addition to its topic, its properties and its body.
const FRAME: usize = 16;
const LONGEST_TEXT: usize = 65_535;

/// Appends a message; `limit` is the largest packet that the broker accepts. On an error nothing is appended.
pub(crate) fn put_publish(
    config: &MqttConfig,
    outgoing: &Outgoing,
    id: u16,
    limit: Option<usize>,
    out: &mut BytesMut,
) -> Result<(), Outcome> {
    let filled = config.topic.fill_named(outgoing, topic::escape);
    let topic = filled.map_err(|unfilled| Outcome::Permanent(unfilled.to_string().into()))?;
    topic::check(&topic).map_err(|why| error::bad_topic(&topic, why))?;
    let encoded = config.format().encode(outgoing, &config.source, NAMES);
    let properties = match config.version {
        Version::V5 => properties(config, &encoded)?,
        Version::V311 => Properties::new(),
    };
    let limit = limit.unwrap_or(LARGEST).min(LARGEST);
    let largest = topic.len() + properties.size() + encoded.body.len() + FRAME;
    if largest > LARGEST {
        return Err(error::too_large(largest, limit));
    }
    let packet = publish(config, &topic, id, properties, &encoded.body).map_err(error::unwritable)?;
    let size = packet.size();
    if size > limit {
        return Err(error::too_large(size, limit));
    }
    put(&packet, out);
    Ok(())
}

fn publish(
    config: &MqttConfig,
    topic: &str,
    id: u16,
    properties: Properties,
    body: &[u8],
) -> Result<Packet, MqttError> {
    let qos = match config.qos {
        Qos::AtLeastOnce => mqtt::Qos::AtLeastOnce,
        Qos::ExactlyOnce => mqtt::Qos::ExactlyOnce,
    };
    match config.version {
        Version::V5 => {
            let packet = v5_0::Publish::builder().topic_name(topic)?.packet_id(id);
            let packet = packet.qos(qos).retain(config.retain).props(properties).payload(body);
            packet.build().map(Packet::from)
        }
        Version::V311 => {
            let packet = v3_1_1::Publish::builder().topic_name(topic)?.packet_id(id);
            let packet = packet.qos(qos).retain(config.retain).payload(body);
            packet.build().map(Packet::from)
        }
    }
}

fn properties(config: &MqttConfig, encoded: &Encoded<'_>) -> Result<Properties, Outcome> {
    let mut properties = Properties::with_capacity(encoded.headers.len() + 3);
    if let Some(expiry) = config.message_expiry {
        let seconds = u32::try_from(expiry.as_secs()).unwrap_or(u32::MAX);
        let expiry = mqtt::MessageExpiryInterval::new(seconds).map_err(error::unwritable)?;
        properties.push(expiry.into());
    }
    let mut encodings = Encodings::default();
    let content_type = encodings.value("content-type", &encoded.content_type, is_safe);
    let content_type = mqtt::ContentType::new(fitting(&content_type)?).map_err(error::unwritable)?;
    properties.push(content_type.into());
    for (name, value) in encoded.headers.iter().filter(|(name, _)| !Encodings::is_own(name)) {
        let name = encodings.name(name, is_safe);
        let value = encodings.value(&name, value, is_safe);
        push_pair(&name, &value, &mut properties)?;
    }
    for (name, value) in encodings.headers() {
        push_pair(name, &value, &mut properties)?;
    }
    Ok(properties)
}

fn push_pair(name: &str, value: &str, properties: &mut Properties) -> Result<(), Outcome> {
    let pair = mqtt::UserProperty::new(fitting(name)?, fitting(value)?).map_err(error::unwritable)?;
    properties.push(pair.into());
    Ok(())
}

fn fitting(text: &str) -> Result<&str, Outcome> {
    if text.len() > LONGEST_TEXT {
        return Err(error::header_too_long(text.len()));
    }
    Ok(text)
}
