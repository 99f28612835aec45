//! The server's end of a connection, and parsers for its input.

pub(crate) mod amqp;
pub(crate) mod broker;
pub(crate) mod tap;
