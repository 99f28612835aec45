//! Reads the packets that a broker sends to a publisher, and writes the small ones of a publisher, with
//! `mqtt-protocol-core`.

use bytes::{Buf as _, BufMut as _, BytesMut};
use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{PacketBuildResult, PacketBuilder, RawPacket};
use mqtt_protocol_core::mqtt::packet::{FixedHeader, GenericPacketTrait as _, Packet, Property, v3_1_1, v5_0};
use mqtt_protocol_core::mqtt::result_code::MqttError;

use crate::Version;
use crate::told::Told;

/// The longest answer to a publisher.
const LARGEST: u32 = 1 << 20;
/// The first bytes of the packets that a publisher gets.
const ANSWERS: [FixedHeader; 6] = [
    FixedHeader::Connack,
    FixedHeader::Puback,
    FixedHeader::Pubrec,
    FixedHeader::Pubcomp,
    FixedHeader::Pingresp,
    FixedHeader::Disconnect,
];

/// A packet from the broker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// The answer to CONNECT; code 0 means accepted.
    ConnAck { code: u8, told: Told },
    /// QoS 1: the message is accepted, or refused with a code.
    PubAck(Ack),
    /// QoS 2, first half.
    PubRec(Ack),
    /// QoS 2, second half.
    PubComp(Ack),
    /// The answer to a ping.
    PingResp,
    /// The broker closes the connection (MQTT 5).
    Disconnect { code: u8, told: Told },
}

/// A confirmation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) id: u16,
    /// Always 0 with 3.1.1.
    pub(crate) code: u8,
    pub(crate) reason: Option<String>,
}

/// Bytes that are not MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Parses packets.
pub(crate) struct Reader {
    version: Version,
    builder: PacketBuilder,
    /// Whether a packet has arrived in part.
    is_inside: bool,
}

impl Reader {
    pub(crate) fn new(version: Version) -> Self {
        Self {
            version,
            builder: PacketBuilder::with_maximum_packet_size(LARGEST),
            is_inside: false,
        }
    }

    /// Takes the next packet out of the buffer; `None` when it is not complete.
    pub(crate) fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Incoming>, Malformed> {
        let Some(&first) = buffer.first() else { return Ok(None) };
        // Checked first; otherwise the sink would wait for the rest of an answer that is not MQTT.
        if !self.is_inside && !ANSWERS.iter().any(|answer| answer.as_u8() == first) {
            return Err(Malformed);
        }
        let mut bytes = Cursor::new(&buffer[..]);
        let built = self.builder.feed(&mut bytes);
        let taken = usize::try_from(bytes.position()).map_err(|_| Malformed)?;
        buffer.advance(taken);
        self.is_inside = matches!(built, PacketBuildResult::Incomplete);
        match built {
            PacketBuildResult::Complete(packet) => match self.version {
                Version::V5 => read_5(&packet).map(Some),
                Version::V311 => read_311(&packet).map(Some),
            },
            PacketBuildResult::Incomplete => Ok(None),
            PacketBuildResult::Error(_) => Err(Malformed),
        }
    }
}

impl From<MqttError> for Malformed {
    fn from(_: MqttError) -> Self {
        Self
    }
}

fn read_5(packet: &RawPacket) -> Result<Incoming, Malformed> {
    let ack = |id, code: Option<u8>, properties: &Option<Vec<Property>>| Ack {
        id,
        // The code may be left out when it is 0.
        code: code.unwrap_or(0),
        reason: Told::of(properties.iter().flatten()).reason,
    };
    Ok(match packet.packet_type() {
        2 => match packet.parse_exact(v5_0::Connack::parse) {
            Ok(connack) => Incoming::ConnAck {
                code: connack.reason_code() as u8,
                told: Told::of(connack.props()),
            },
            // A broker that supports only 3.1.1 answers in 3.1.1's form.
            Err(_) => read_311(packet)?,
        },
        4 => {
            let puback = packet.parse_exact(v5_0::Puback::parse)?;
            let code = puback.reason_code().map(|code| code as u8);
            Incoming::PubAck(ack(puback.packet_id(), code, puback.props()))
        }
        5 => {
            let pubrec = packet.parse_exact(v5_0::Pubrec::parse)?;
            let code = pubrec.reason_code().map(|code| code as u8);
            Incoming::PubRec(ack(pubrec.packet_id(), code, pubrec.props()))
        }
        7 => {
            let pubcomp = packet.parse_exact(v5_0::Pubcomp::parse)?;
            let code = pubcomp.reason_code().map(|code| code as u8);
            Incoming::PubComp(ack(pubcomp.packet_id(), code, pubcomp.props()))
        }
        13 => packet.parse_exact(v5_0::Pingresp::parse).map(|_| Incoming::PingResp)?,
        14 => {
            let disconnect = packet.parse_exact(v5_0::Disconnect::parse)?;
            Incoming::Disconnect {
                code: disconnect.reason_code().map_or(0, |code| code as u8),
                told: Told::of(disconnect.props().iter().flatten()),
            }
        }
        _ => return Err(Malformed),
    })
}

fn read_311(packet: &RawPacket) -> Result<Incoming, Malformed> {
    let ack = |id| Ack {
        id,
        code: 0,
        reason: None,
    };
    Ok(match packet.packet_type() {
        2 => Incoming::ConnAck {
            code: packet.parse_exact(v3_1_1::Connack::parse)?.return_code() as u8,
            told: Told::default(),
        },
        4 => Incoming::PubAck(ack(packet.parse_exact(v3_1_1::Puback::parse)?.packet_id())),
        5 => Incoming::PubRec(ack(packet.parse_exact(v3_1_1::Pubrec::parse)?.packet_id())),
        7 => Incoming::PubComp(ack(packet.parse_exact(v3_1_1::Pubcomp::parse)?.packet_id())),
        13 => packet
            .parse_exact(v3_1_1::Pingresp::parse)
            .map(|_| Incoming::PingResp)?,
        _ => return Err(Malformed),
    })
}

/// Appends a packet.
pub(crate) fn put(packet: &Packet, out: &mut BytesMut) {
    out.reserve(packet.size());
    for part in packet.to_buffers() {
        out.put_slice(&part);
    }
}

/// QoS 2: starts the second half.
pub(crate) fn put_pubrel(version: Version, id: u16, out: &mut BytesMut) {
    let pubrel = match version {
        Version::V5 => v5_0::Pubrel::builder().packet_id(id).build().map(Packet::from),
        Version::V311 => v3_1_1::Pubrel::builder().packet_id(id).build().map(Packet::from),
    };
    // Only the id 0 is invalid, and no received packet has it.
    if let Ok(pubrel) = pubrel {
        put(&pubrel, out);
    }
}

/// Appends PINGREQ.
pub(crate) fn put_pingreq(version: Version, out: &mut BytesMut) {
    let pingreq = match version {
        Version::V5 => v5_0::Pingreq::new().into(),
        Version::V311 => v3_1_1::Pingreq::new().into(),
    };
    put(&pingreq, out);
}

/// Appends DISCONNECT.
pub(crate) fn put_disconnect(version: Version, out: &mut BytesMut) {
    let disconnect = match version {
        Version::V5 => v5_0::Disconnect::builder().build().map(Packet::from),
        Version::V311 => Ok(v3_1_1::Disconnect::new().into()),
    };
    if let Ok(disconnect) = disconnect {
        put(&disconnect, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<Incoming>, Malformed> {
        Reader::new(Version::V5).next(&mut BytesMut::from(bytes))
    }

    #[test]
    fn confirmations_are_read_short_and_long() {
        let plain = |code| Ack {
            id: 7,
            code,
            reason: None,
        };
        assert_eq!(read(b"\x40\x02\x00\x07"), Ok(Some(Incoming::PubAck(plain(0)))));
        assert_eq!(read(b"\x50\x03\x00\x07\x97"), Ok(Some(Incoming::PubRec(plain(0x97)))));
        assert_eq!(
            read(b"\x50\x04\x00\x07\x10\x00"),
            Ok(Some(Incoming::PubRec(plain(0x10))))
        );
        assert_eq!(read(b"\x70\x03\x00\x07\x92"), Ok(Some(Incoming::PubComp(plain(0x92)))));
        let told = read(b"\x40\x09\x00\x07\x87\x05\x1f\x00\x02no").unwrap().unwrap();
        assert!(matches!(told, Incoming::PubAck(Ack { reason: Some(reason), .. }) if reason == "no"));
    }

    #[test]
    fn half_a_packet_waits_for_the_rest() {
        let whole = b"\x40\x04\x00\x07\x10\x00\xd0\x00";
        for cut in 0..6 {
            let mut reader = Reader::new(Version::V5);
            let mut buffer = BytesMut::from(&whole[..cut]);
            assert_eq!(reader.next(&mut buffer), Ok(None), "{cut}");
            buffer.put_slice(&whole[cut..]);
            assert!(
                matches!(reader.next(&mut buffer), Ok(Some(Incoming::PubAck(_)))),
                "{cut}"
            );
            assert_eq!(reader.next(&mut buffer), Ok(Some(Incoming::PingResp)));
            assert_eq!(reader.next(&mut buffer), Ok(None));
        }
    }

    #[test]
    fn a_broker_that_knows_only_3_1_1_is_understood() {
        let told = Told::default();
        assert_eq!(read(b"\x20\x02\x00\x01"), Ok(Some(Incoming::ConnAck { code: 1, told })));
    }

    #[test]
    fn what_is_no_mqtt_is_malformed() {
        for bad in [
            &b"HTTP/1.1 400 Bad Request"[..],
            b"\x40\xff\xff\xff\xff\x01",
            b"\x40\x00",
            b"\x40\x02\x00\x00",
            b"\x30\x02\x00\x07",
        ] {
            assert_eq!(read(bad), Err(Malformed), "{bad:?}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        proptest::proptest!(|(first in proptest::sample::select(&ANSWERS[..]), mut bytes: Vec<u8>, old: bool)| {
            bytes.insert(0, first.as_u8());
            if let Ok(length) = u8::try_from(bytes.len() - 1) {
                bytes.insert(1, length & 0x7F);
            }
            let version = if old { Version::V311 } else { Version::V5 };
            let (mut reader, mut buffer) = (Reader::new(version), BytesMut::from(&bytes[..]));
            while let Ok(Some(_)) = reader.next(&mut buffer) {}
        });
    }
}
