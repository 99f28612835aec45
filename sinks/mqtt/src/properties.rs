//! The properties of MQTT 5: those that we write, and how to read past the others.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::packet::Malformed;

pub(crate) const MESSAGE_EXPIRY: u8 = 0x02;
pub(crate) const CONTENT_TYPE: u8 = 0x03;
const SERVER_KEEP_ALIVE: u8 = 0x13;
const REASON_STRING: u8 = 0x1F;
const RECEIVE_MAXIMUM: u8 = 0x21;
const MAXIMUM_QOS: u8 = 0x24;
const RETAIN_AVAILABLE: u8 = 0x25;
pub(crate) const USER_PROPERTY: u8 = 0x26;
const MAXIMUM_PACKET_SIZE: u8 = 0x27;

/// What a broker may tell us that matters to a publisher.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) reason: Option<String>,
    pub(crate) receive_maximum: Option<u16>,
    pub(crate) maximum_qos: Option<u8>,
    pub(crate) retain_available: Option<u8>,
    pub(crate) maximum_packet_size: Option<u32>,
    pub(crate) keep_alive: Option<u16>,
}

/// Reads a block of properties, with its length in front. No block at all is an empty one.
pub(crate) fn read(packet: &mut Bytes) -> Result<Told, Malformed> {
    let mut told = Told::default();
    if !packet.has_remaining() {
        return Ok(told);
    }
    let length = varint(packet)?;
    if packet.len() < length {
        return Err(Malformed);
    }
    let mut block = packet.split_to(length);
    while block.has_remaining() {
        match block.try_get_u8().map_err(|_| Malformed)? {
            SERVER_KEEP_ALIVE => told.keep_alive = Some(block.try_get_u16().map_err(|_| Malformed)?),
            REASON_STRING => told.reason = Some(text(&mut block)?),
            RECEIVE_MAXIMUM => told.receive_maximum = Some(block.try_get_u16().map_err(|_| Malformed)?),
            MAXIMUM_QOS => told.maximum_qos = Some(block.try_get_u8().map_err(|_| Malformed)?),
            RETAIN_AVAILABLE => told.retain_available = Some(block.try_get_u8().map_err(|_| Malformed)?),
            MAXIMUM_PACKET_SIZE => told.maximum_packet_size = Some(block.try_get_u32().map_err(|_| Malformed)?),
            // What brokers say to subscribers, by the type of its value.
            0x01 | 0x17 | 0x19 | 0x28 | 0x29 | 0x2A => skip(&mut block, 1)?,
            0x22 | 0x23 => skip(&mut block, 2)?,
            MESSAGE_EXPIRY | 0x11 | 0x18 => skip(&mut block, 4)?,
            0x0B => drop(varint(&mut block)?),
            CONTENT_TYPE | 0x08 | 0x09 | 0x12 | 0x15 | 0x16 | 0x1A | 0x1C => drop(bytes(&mut block)?),
            USER_PROPERTY => {
                bytes(&mut block)?;
                bytes(&mut block)?;
            }
            _ => return Err(Malformed),
        }
    }
    Ok(told)
}

/// A number in one to four bytes, seven bits each.
pub(crate) fn varint(from: &mut impl Buf) -> Result<usize, Malformed> {
    let mut value = 0;
    for shift in [0, 7, 14, 21] {
        let byte = from.try_get_u8().map_err(|_| Malformed)?;
        value |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

pub(crate) fn put_varint(mut value: usize, out: &mut BytesMut) {
    loop {
        // Seven bits fit.
        let low = (value & 0x7F) as u8;
        value >>= 7;
        if value == 0 {
            out.put_u8(low);
            return;
        }
        out.put_u8(low | 0x80);
    }
}

pub(crate) fn varint_len(value: usize) -> usize {
    match value {
        0..=0x7F => 1,
        0x80..=0x3FFF => 2,
        0x4000..=0x1F_FFFF => 3,
        _ => 4,
    }
}

/// Writes a text with its length in front; what does not fit into 65535 bytes is refused.
pub(crate) fn put_text(text: &str, out: &mut BytesMut) -> Result<(), TooLong> {
    put_bytes(text.as_bytes(), out)
}

pub(crate) fn put_bytes(bytes: &[u8], out: &mut BytesMut) -> Result<(), TooLong> {
    out.put_u16(u16::try_from(bytes.len()).map_err(|_| TooLong(bytes.len()))?);
    out.put_slice(bytes);
    Ok(())
}

/// A text or a secret with more than 65535 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong(pub(crate) usize);

fn bytes(from: &mut Bytes) -> Result<Bytes, Malformed> {
    let length = usize::from(from.try_get_u16().map_err(|_| Malformed)?);
    if from.len() < length {
        return Err(Malformed);
    }
    Ok(from.split_to(length))
}

fn text(from: &mut Bytes) -> Result<String, Malformed> {
    String::from_utf8(bytes(from)?.into()).map_err(|_| Malformed)
}

fn skip(from: &mut Bytes, count: usize) -> Result<(), Malformed> {
    if from.len() < count {
        return Err(Malformed);
    }
    from.advance(count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_their_bytes() {
        for value in [0, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455] {
            let mut out = BytesMut::new();
            put_varint(value, &mut out);
            assert_eq!(out.len(), varint_len(value));
            assert_eq!(varint(&mut out.freeze()), Ok(value));
        }
        assert_eq!(varint(&mut &[0xFF_u8; 5][..]), Err(Malformed));
    }

    #[test]
    fn what_a_broker_tells_is_read_and_the_rest_skipped() {
        let block = b"\x14\x21\x00\x0a\x27\x00\x00\x10\x00\x12\x00\x01x\x22\x00\x05\x1f\x00\x02no";
        let mut packet = Bytes::from_static(block);
        packet = [&[u8::try_from(block.len() - 1).unwrap()], &packet[1..]]
            .concat()
            .into();
        let told = read(&mut packet).unwrap();
        assert_eq!((told.receive_maximum, told.maximum_packet_size), (Some(10), Some(4096)));
        assert_eq!(told.reason.as_deref(), Some("no"));
        assert!(packet.is_empty());
    }

    #[test]
    fn no_bytes_make_it_panic() {
        proptest::proptest!(|(bytes: Vec<u8>)| {
            let _ = read(&mut Bytes::from(bytes));
        });
    }
}
