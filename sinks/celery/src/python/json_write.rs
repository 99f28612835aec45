//! Writes JSON like Python's `json.dumps`: a space after commas and colons, and only ASCII.

use std::fmt::Write as _;

use super::{Text, Value};

/// Writes a value as JSON. Numbers keep their original text.
pub fn write_json(value: &Value) -> String {
    let mut json = String::new();
    write(&mut json, value);
    json
}

/// Appends a list as JSON.
pub fn write_json_list(json: &mut String, items: &[Value]) {
    json.push('[');
    for (at, item) in items.iter().enumerate() {
        json.push_str(if at > 0 { ", " } else { "" });
        write(json, item);
    }
    json.push(']');
}

/// Appends an object as JSON.
pub fn write_json_map(json: &mut String, entries: &[(Text, Value)]) {
    json.push('{');
    for (at, (name, value)) in entries.iter().enumerate() {
        json.push_str(if at > 0 { ", " } else { "" });
        write_text(json, name);
        json.push_str(": ");
        write(json, value);
    }
    json.push('}');
}

fn write(json: &mut String, value: &Value) {
    match value {
        Value::Null => json.push_str("null"),
        Value::Bool(true) => json.push_str("true"),
        Value::Bool(false) => json.push_str("false"),
        Value::Int(literal) | Value::Float(literal) => json.push_str(literal),
        Value::Text(text) => write_text(json, text),
        Value::List(items) => write_json_list(json, items),
        Value::Map(entries) => write_json_map(json, entries),
    }
}

/// Writes a string with its quotes.
fn write_text(json: &mut String, text: &Text) {
    json.push('"');
    for code in text.codes() {
        match code {
            0x22 => json.push_str("\\\""),
            0x5c => json.push_str("\\\\"),
            0x08 => json.push_str("\\b"),
            0x0c => json.push_str("\\f"),
            0x0a => json.push_str("\\n"),
            0x0d => json.push_str("\\r"),
            0x09 => json.push_str("\\t"),
            0x20..0x7f => json.push(char::from(code as u8)),
            0x1_0000.. => {
                let code = code - 0x1_0000;
                escape(json, 0xd800 + (code >> 10));
                escape(json, 0xdc00 + (code & 0x3ff));
            }
            _ => escape(json, code),
        }
    }
    json.push('"');
}

fn escape(json: &mut String, unit: u32) {
    // Writing into a string cannot fail.
    let _ = write!(json, "\\u{unit:04x}");
}
