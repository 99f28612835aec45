//! A message as the broker takes it.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::message::BasicReturnMessage;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use sendoff::Reason;

/// What a header frame holds beside the properties, and room for what we may have counted too small.
const FRAME_OVERHEAD: usize = 256;

/// One message, ready to be published.
///
/// Give it a `message_id` or a `correlation_id` of its own: by them a message that the broker returns is known again.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The exchange; empty is the default exchange, where the routing key is the name of a queue.
    pub exchange: ShortString,
    /// The routing key.
    pub routing_key: ShortString,
    /// Properties and headers.
    pub properties: BasicProperties,
    /// The body.
    pub body: Bytes,
}

impl Prepared {
    /// Why a broker would never take it, or would even end the connection because of it.
    pub(super) fn unsendable(&self, max_message_bytes: usize, frame_max: usize) -> Option<Reason> {
        let bytes = self.body.len();
        if bytes > max_message_bytes {
            let reason = format!(
                "the message has {bytes} bytes and the limit is {max_message_bytes} (store the data elsewhere and send a \
                 reference, or raise RabbitMQ's max_message_size and the sink's max_message_bytes, then replay it)"
            );
            return Some(reason.into());
        }
        let bytes = self.properties.headers().as_ref().map_or(0, table_bytes) + FRAME_OVERHEAD + 10 * 256;
        (bytes > frame_max).then(|| {
            format!(
                "the headers have {bytes} bytes and RabbitMQ takes no more than its frame_max, {frame_max} (move data from \
                 the headers to the payload)"
            )
            .into()
        })
    }

    /// Whether the broker returned this message, or one that nobody can tell from it.
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

/// With the byte of its type.
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
