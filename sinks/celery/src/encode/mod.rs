//! Encodes a stored task as a message of Celery's protocol 2, the same for every broker.

mod body;
mod compress;
mod encoder;
mod headers;
mod message;
mod moment;

pub use encoder::Encoder;
pub use message::{CeleryMessage, Properties};
