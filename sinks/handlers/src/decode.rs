//! From a payload to the type that a handler takes.

use sendoff::{Delivery, Reason, envelope};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// The payload as a `T`, or why it is none, without a word of what is in it.
pub(crate) fn decode<T: DeserializeOwned>(delivery: &Delivery) -> Result<T, Reason> {
    let wanted = std::any::type_name::<T>();
    if !envelope::is_json(delivery.content_type()) {
        return Err(Reason::new(format!(
            "the handler takes JSON and the payload's content type is {:?} (register it with on_raw)",
            delivery.content_type()
        )));
    }
    serde_json::from_slice(&delivery.payload).map_err(|error| {
        // The error's own words may quote a value.
        let what = match error.classify() {
            Category::Syntax | Category::Io => "is not valid JSON".to_owned(),
            Category::Eof => "ends in the middle of a value".to_owned(),
            Category::Data => format!("does not fit {wanted}"),
        };
        let (line, column) = (error.line(), error.column());
        Reason::new(format!(
            "the payload {what} at line {line}, column {column} (correct its producer or the handler's type, then retry it)"
        ))
    })
}
