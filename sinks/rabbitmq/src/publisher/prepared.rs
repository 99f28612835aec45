//! An encoded message.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::message::BasicReturnMessage;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use sendoff::Reason;

/// The size of a header frame without the properties, with some reserve for estimates that are too small.
const FRAME_OVERHEAD: usize = 256;

/// A message that is ready to be published.
///
/// It needs a unique `message_id` or `correlation_id`, by which a returned message is recognised.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The exchange. An empty name is the default exchange, where the routing key is the name of a queue.
    pub exchange: ShortString,
    /// The routing key of the message.
    pub routing_key: ShortString,
    /// The AMQP properties of the message, including its headers.
    pub properties: BasicProperties,
    /// The body of the message.
    pub body: Bytes,
}

impl Prepared {
    /// Why a broker would never accept it, or would close the connection because of it.
    pub(super) fn unsendable(&self, max_message_bytes: usize, frame_max: usize) -> Option<Reason> {
        let bytes = self.body.len();
        if bytes > max_message_bytes {
            let reason = format!(
                "the message has {bytes} bytes and the limit is {max_message_bytes} (raise RabbitMQ's \
                 max_message_size and `max_message_bytes` of the sink, then retry the message, or send a reference)"
            );
            return Some(reason.into());
        }
        let bytes = self.properties.headers().as_ref().map_or(0, table_bytes) + FRAME_OVERHEAD + 10 * 256;
        (bytes > frame_max).then(|| {
            format!(
                "the message's headers have {bytes} bytes and RabbitMQ accepts no more than its frame_max, \
                 {frame_max} (raise frame_max, then retry the message, or move data from the headers to the payload)"
            )
            .into()
        })
    }

    /// Whether the broker returned this message, or one with the same ids.
    pub(super) fn is(&self, returned: &BasicReturnMessage) -> bool {
        self.exchange == returned.delivery.exchange
            && self.routing_key == returned.delivery.routing_key
            && self.properties.message_id() == returned.delivery.properties.message_id()
            && self.properties.correlation_id() == returned.delivery.properties.correlation_id()
    }
}

fn table_bytes(table: &FieldTable) -> usize {
    let fields = table.inner().iter();
    4 + fields
        .map(|(name, value)| 1 + name.as_str().len() + value_bytes(value))
        .sum::<usize>()
}

/// The size of a value, including the byte for its type.
fn value_bytes(value: &AMQPValue) -> usize {
    1 + match value {
        AMQPValue::Void => 0,
        AMQPValue::Boolean(_) | AMQPValue::ShortShortInt(_) | AMQPValue::ShortShortUInt(_) => 1,
        AMQPValue::ShortInt(_) | AMQPValue::ShortUInt(_) => 2,
        AMQPValue::LongInt(_) | AMQPValue::LongUInt(_) | AMQPValue::Float(_) => 4,
        AMQPValue::DecimalValue(_) => 5,
        AMQPValue::LongLongInt(_) | AMQPValue::Double(_) | AMQPValue::Timestamp(_) => 8,
        AMQPValue::ShortString(text) => 1 + text.as_str().len(),
        AMQPValue::LongString(text) => 4 + text.as_bytes().len(),
        AMQPValue::ByteArray(bytes) => 4 + bytes.as_slice().len(),
        AMQPValue::FieldArray(values) => 4 + values.as_slice().iter().map(value_bytes).sum::<usize>(),
        AMQPValue::FieldTable(table) => table_bytes(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(body: usize, header: usize) -> Prepared {
        let mut headers = FieldTable::default();
        headers.insert("h".into(), AMQPValue::LongString("x".repeat(header).into()));
        Prepared {
            exchange: "e".into(),
            routing_key: "k".into(),
            properties: BasicProperties::default().with_headers(headers),
            body: vec![0; body].into(),
        }
    }

    #[test]
    fn a_message_that_the_broker_would_not_take_is_not_sent() {
        assert_eq!(prepared(10, 10).unsendable(10, 4096), None);
        let reason = prepared(11, 10).unsendable(10, 4096).unwrap();
        assert!(reason.text().contains("11 bytes and the limit is 10"), "{reason:?}");
        let reason = prepared(10, 4000).unsendable(10, 4096).unwrap();
        assert!(reason.text().contains("frame_max, 4096"), "{reason:?}");
    }
}
