//! The body of a task: its arguments and its callbacks.

use sendoff::Result;

use crate::error::invalid;
use crate::python::{Text, Value, write_json_list, write_json_map, write_yaml};
use crate::task::TaskCall;

/// A body with its content type and encoding.
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
    let embed: [(Text, Value); 4] = embed.map(|(name, value)| (name.into(), value.unwrap_or(Value::Null)));
    let (content_type, text) = match serializer {
        "json" => ("application/json", json(call, &embed)),
        "yaml" => {
            let value = Value::List(vec![
                Value::List(call.args.clone()),
                Value::Map(call.kwargs.clone()),
                Value::Map(embed.into()),
            ]);
            ("application/x-yaml", write_yaml(&value)?)
        }
        other => {
            return Err(invalid(
                format!("the serializer {other:?} of the task is not supported"),
                "the relay supports json and yaml",
                "use one of them for this task",
            ));
        }
    };
    Ok(Body {
        content_type,
        content_encoding: "utf-8",
        bytes: text.into_bytes(),
    })
}

/// Written without copying the arguments: most tasks use JSON, and copies would cost more than writing.
fn json(call: &TaskCall, embed: &[(Text, Value)]) -> String {
    let mut json = String::with_capacity(256);
    json.push('[');
    write_json_list(&mut json, &call.args);
    json.push_str(", ");
    write_json_map(&mut json, &call.kwargs);
    json.push_str(", ");
    write_json_map(&mut json, embed);
    json.push(']');
    json
}
