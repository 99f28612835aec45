//! Messages for RabbitMQ, with the AMQP types that Celery's own client gives its headers. This module does no I/O.

mod declare;
mod field;
mod publish;

pub use declare::Declaration;
pub use field::{Field, Table};
pub use publish::{AmqpProperties, AmqpPublish};
