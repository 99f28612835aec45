//! A message for RabbitMQ, with the AMQP types that Celery's own client would give its headers. No connection.

mod declare;
mod field;
mod publish;

pub use declare::Declaration;
pub use field::{Field, Table};
pub use publish::{AmqpProperties, AmqpPublish};
