//! The body of a task: its arguments, and what is to be done after it.

use sendoff::Result;

use crate::error::invalid;
use crate::python::{Value, write_json, write_yaml};
use crate::task::TaskCall;

/// A body, with the content type and encoding that tell a worker how to read it.
pub(super) struct Body {
    pub(super) content_type: &'static str,
    pub(super) content_encoding: &'static str,
    pub(super) bytes: Vec<u8>,
}

pub(super) fn body(call: &TaskCall, serializer: &str) -> Result<Body> {
    let embed = [
        ("callbacks", call.options.signatures("link")?),
        ("errbacks", call.options.signatures("link_error")?),
        ("chain", call.options.signatures("chain")?),
        ("chord", call.options.value("chord").cloned()),
    ];
    let embed = embed.map(|(name, value)| (name.into(), value.unwrap_or(Value::Null)));
    let value = Value::List(vec![
        Value::List(call.args.clone()),
        Value::Map(call.kwargs.clone()),
        Value::Map(embed.into()),
    ]);
    let (content_type, text) = match serializer {
        "json" => ("application/json", write_json(&value)),
        "yaml" => ("application/x-yaml", write_yaml(&value)?),
        other => {
            return Err(invalid(
                format!("the serializer {other:?} cannot be used"),
                "a relay can write json and yaml",
                "choose one of them for this task",
            ));
        }
    };
    Ok(Body {
        content_type,
        content_encoding: "utf-8",
        bytes: text.into_bytes(),
    })
}
