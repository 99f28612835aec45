//! Converts a publish to the types of the RabbitMQ client.

use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, ExchangeKind};
use sendoff_sink_rabbitmq::publisher::{Declare, Exchange, Prepared, Queue, Topology};

use crate::amqp::{AmqpProperties, AmqpPublish, Declaration, Field, Table};
use crate::config::ExchangeType;

/// The message for the publisher.
pub(super) fn prepared(publish: AmqpPublish) -> Prepared {
    Prepared {
        exchange: publish.exchange.into(),
        routing_key: publish.routing_key.into(),
        properties: properties(publish.properties),
        body: publish.body.into(),
    }
}

/// The topology to declare.
pub(super) fn topology(declaration: &Declaration) -> Topology {
    let Declaration {
        passive,
        exchange,
        exchange_type,
        queue,
        arguments,
        routing_key,
    } = declaration;
    let kind = match exchange_type {
        ExchangeType::Direct => ExchangeKind::Direct,
        ExchangeType::Topic => ExchangeKind::Topic,
        ExchangeType::Fanout => ExchangeKind::Fanout,
    };
    // Every queue is bound to the default exchange by its name, and no other binding to it is possible.
    let binding = (!exchange.is_empty()).then(|| (exchange.as_str().into(), routing_key.as_str().into()));
    Topology {
        declare: if *passive { Declare::Passive } else { Declare::Active },
        exchange: Some(Exchange { kind, durable: true }),
        queues: vec![Queue {
            name: queue.as_str().into(),
            durable: true,
            arguments: table(arguments.clone()),
            bindings: binding.into_iter().collect(),
        }],
    }
}

fn properties(own: AmqpProperties) -> BasicProperties {
    let mut properties = BasicProperties::default()
        .with_content_type(own.content_type.into())
        .with_content_encoding(own.content_encoding.into())
        .with_headers(table(own.headers))
        .with_delivery_mode(own.delivery_mode)
        .with_priority(own.priority)
        .with_correlation_id(own.correlation_id.into());
    type With = fn(BasicProperties, lapin::types::ShortString) -> BasicProperties;
    let rest: [(Option<String>, With); 6] = [
        (own.reply_to, BasicProperties::with_reply_to),
        (own.expiration, BasicProperties::with_expiration),
        (own.message_id, BasicProperties::with_message_id),
        (own.kind, BasicProperties::with_type),
        (own.user_id, BasicProperties::with_user_id),
        (own.app_id, BasicProperties::with_app_id),
    ];
    for (value, with) in rest {
        if let Some(value) = value {
            properties = with(properties, value.into());
        }
    }
    properties
}

fn table(own: Table) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, field) in own {
        table.insert(name.into(), value(field));
    }
    table
}

fn value(field: Field) -> AMQPValue {
    match field {
        Field::Void => AMQPValue::Void,
        Field::Bool(value) => AMQPValue::Boolean(value),
        Field::Int(number) => AMQPValue::LongInt(number),
        Field::Long(number) => AMQPValue::LongLongInt(number),
        Field::Double(number) => AMQPValue::Double(number),
        Field::Text(bytes) => AMQPValue::LongString(bytes.into()),
        Field::Array(items) => AMQPValue::FieldArray(items.into_iter().map(value).collect::<Vec<_>>().into()),
        Field::Table(entries) => AMQPValue::FieldTable(table(entries)),
    }
}

#[cfg(test)]
mod tests {
    use lapin::types::FieldArray;

    use super::*;

    #[test]
    fn every_field_keeps_its_type() {
        let list = vec![Field::Int(1), Field::Void];
        for (field, expected) in [
            (Field::Void, AMQPValue::Void),
            (Field::Bool(true), AMQPValue::Boolean(true)),
            (Field::Int(-5), AMQPValue::LongInt(-5)),
            (Field::Long(1 << 40), AMQPValue::LongLongInt(1 << 40)),
            (Field::Double(0.5), AMQPValue::Double(0.5)),
            (
                Field::Text(vec![0xed, 0xa0, 0x80]),
                AMQPValue::LongString(vec![0xed, 0xa0, 0x80].into()),
            ),
            (
                Field::Array(list.clone()),
                AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::LongInt(1), AMQPValue::Void])),
            ),
        ] {
            assert_eq!(value(field), expected);
        }
        let AMQPValue::FieldTable(entries) = value(Field::Table(vec![("a".into(), Field::Array(list))])) else {
            panic!("a table")
        };
        assert!(matches!(entries.inner().get("a"), Some(AMQPValue::FieldArray(_))));
    }
}
