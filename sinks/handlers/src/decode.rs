//! Decodes a payload into a handler's type.

use sendoff::{Outgoing, Reason, envelope};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Decodes the payload. The error does not quote it.
pub(crate) fn decode<T: DeserializeOwned>(outgoing: &Outgoing) -> Result<T, Reason> {
    let wanted = std::any::type_name::<T>();
    if !envelope::is_json(outgoing.content_type()) {
        return Err(Reason::new(format!(
            "the handler expects JSON, and the payload's content type is {:?} (register the handler with on_raw)",
            outgoing.content_type()
        )));
    }
    serde_json::from_slice(&outgoing.payload).map_err(|error| {
        // The error's own text may quote a value.
        let what = match error.classify() {
            Category::Syntax | Category::Io => "is not valid JSON".to_owned(),
            Category::Eof => "ends in the middle of a value".to_owned(),
            Category::Data => format!("does not match {wanted}"),
        };
        let (line, column) = (error.line(), error.column());
        Reason::new(format!(
            "the payload {what} at line {line}, column {column} (correct the application that emits it, or the \
             handler's type, then retry the message)"
        ))
    })
}
