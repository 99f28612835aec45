//! The far end of a connection, and what is read there.

pub(crate) mod amqp;
pub(crate) mod broker;
pub(crate) mod tap;
