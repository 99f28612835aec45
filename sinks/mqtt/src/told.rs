//! The properties of MQTT 5 that matter to a publisher.

use mqtt_protocol_core::mqtt::packet::Property;

/// The values of the properties.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) reason: Option<String>,
    pub(crate) receive_maximum: Option<u16>,
    pub(crate) maximum_qos: Option<u8>,
    pub(crate) retain_available: Option<u8>,
    pub(crate) maximum_packet_size: Option<u32>,
    pub(crate) keep_alive: Option<u16>,
}

impl Told {
    pub(crate) fn of<'a>(properties: impl IntoIterator<Item = &'a Property>) -> Self {
        let mut told = Self::default();
        for property in properties {
            match property {
                Property::ReasonString(reason) => told.reason = Some(reason.val().to_owned()),
                Property::ReceiveMaximum(most) => told.receive_maximum = Some(most.val()),
                Property::MaximumQos(most) => told.maximum_qos = Some(most.val()),
                Property::RetainAvailable(is) => told.retain_available = Some(is.val()),
                Property::MaximumPacketSize(most) => told.maximum_packet_size = Some(most.val()),
                Property::ServerKeepAlive(seconds) => told.keep_alive = Some(seconds.val()),
                // For subscribers.
                _ => {}
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::Version;
    use crate::packet::{Incoming, Reader};

    #[test]
    fn what_a_broker_tells_is_read_and_the_rest_skipped() {
        let connack =
            b"\x20\x1a\x00\x00\x17\x21\x00\x0a\x27\x00\x00\x10\x00\x12\x00\x01x\x22\x00\x05\x13\x00\x3c\x1f\x00\x02no";
        let read = Reader::new(Version::V5).next(&mut BytesMut::from(&connack[..]));
        let Ok(Some(Incoming::ConnAck { code: 0, told })) = read else {
            panic!("{read:?}")
        };
        let expected = Told {
            reason: Some("no".to_owned()),
            receive_maximum: Some(10),
            maximum_packet_size: Some(4096),
            keep_alive: Some(60),
            ..Told::default()
        };
        assert_eq!(told, expected);
    }
}
