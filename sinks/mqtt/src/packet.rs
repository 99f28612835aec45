//! The packets that a broker sends to a publisher, and the small ones that a publisher sends.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::Version;
use crate::properties::{self, Told, varint};

/// No answer to a publisher is longer.
const LARGEST: usize = 1 << 20;

/// What a broker said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// The answer to our CONNECT; 0 is yes.
    ConnAck { code: u8, told: Told },
    /// QoS 1: it has the message, or says why not.
    PubAck(Ack),
    /// QoS 2, first half.
    PubRec(Ack),
    /// QoS 2, second half.
    PubComp(Ack),
    /// It is alive.
    PingResp,
    /// It ends the connection (MQTT 5).
    Disconnect { code: u8, told: Told },
}

/// A confirmation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) id: u16,
    /// 0 with 3.1.1, which knows no other.
    pub(crate) code: u8,
    pub(crate) reason: Option<String>,
}

/// Bytes that are not MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Takes the next packet out of what was read; `None` when it has not come as a whole.
pub(crate) fn next(buffer: &mut BytesMut, version: Version) -> Result<Option<Incoming>, Malformed> {
    let Some(&first) = buffer.first() else { return Ok(None) };
    // Said at once, or something else than MQTT would be waited for in vain.
    if ![0x20, 0x40, 0x50, 0x70, 0xD0, 0xE0].contains(&first) {
        return Err(Malformed);
    }
    let ends = buffer.iter().skip(1).take(4).position(|byte| byte & 0x80 == 0);
    let Some(ends) = ends else {
        return if buffer.len() > 4 { Err(Malformed) } else { Ok(None) };
    };
    let header = ends + 2;
    let length = varint(&mut &buffer[1..header])?;
    if length > LARGEST {
        return Err(Malformed);
    }
    if buffer.len() < header + length {
        return Ok(None);
    }
    buffer.advance(header);
    let mut body = buffer.split_to(length).freeze();
    Ok(Some(match first {
        0x20 => {
            let _session = body.try_get_u8().map_err(|_| Malformed)?;
            let code = body.try_get_u8().map_err(|_| Malformed)?;
            let told = match version {
                Version::V5 => properties::read(&mut body)?,
                Version::V311 => Told::default(),
            };
            Incoming::ConnAck { code, told }
        }
        0x40 => Incoming::PubAck(ack(&mut body)?),
        0x50 => Incoming::PubRec(ack(&mut body)?),
        0x70 => Incoming::PubComp(ack(&mut body)?),
        0xD0 => Incoming::PingResp,
        0xE0 => Incoming::Disconnect {
            code: body.try_get_u8().unwrap_or(0),
            told: properties::read(&mut body)?,
        },
        _ => return Err(Malformed),
    }))
}

fn ack(body: &mut Bytes) -> Result<Ack, Malformed> {
    let id = body.try_get_u16().map_err(|_| Malformed)?;
    // Left out when it is 0, as in 3.1.1 always.
    let code = body.try_get_u8().unwrap_or(0);
    let told = properties::read(body)?;
    Ok(Ack {
        id,
        code,
        reason: told.reason,
    })
}

/// QoS 2: go on with the second half.
pub(crate) fn put_pubrel(id: u16, out: &mut BytesMut) {
    out.put_slice(&[0x62, 2]);
    out.put_u16(id);
}

/// Are you there?
pub(crate) fn put_pingreq(out: &mut BytesMut) {
    out.put_slice(&[0xC0, 0]);
}

/// Good bye.
pub(crate) fn put_disconnect(out: &mut BytesMut) {
    out.put_slice(&[0xE0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<Incoming>, Malformed> {
        next(&mut BytesMut::from(bytes), Version::V5)
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
            read(b"\x70\x04\x00\x07\x10\x00"),
            Ok(Some(Incoming::PubComp(plain(0x10))))
        );
        let told = read(b"\x40\x09\x00\x07\x87\x05\x1f\x00\x02no").unwrap().unwrap();
        assert!(matches!(told, Incoming::PubAck(Ack { reason: Some(reason), .. }) if reason == "no"));
    }

    #[test]
    fn half_a_packet_waits_for_the_rest() {
        let whole = b"\x40\x04\x00\x07\x10\x00\xd0\x00";
        for cut in 0..6 {
            assert_eq!(read(&whole[..cut]), Ok(None), "{cut}");
        }
        let mut buffer = BytesMut::from(&whole[..]);
        assert!(matches!(next(&mut buffer, Version::V5), Ok(Some(Incoming::PubAck(_)))));
        assert_eq!(next(&mut buffer, Version::V5), Ok(Some(Incoming::PingResp)));
        assert_eq!(next(&mut buffer, Version::V5), Ok(None));
    }

    #[test]
    fn what_is_no_mqtt_is_malformed() {
        for bad in [
            &b"HTTP/1.1 400 Bad Request"[..],
            b"\x40\xff\xff\xff\xff\x01",
            b"\x40\x00",
            b"\x30\x02\x00\x07",
        ] {
            assert_eq!(read(bad), Err(Malformed), "{bad:?}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        proptest::proptest!(|(bytes: Vec<u8>)| {
            let _ = read(&bytes);
        });
    }
}
