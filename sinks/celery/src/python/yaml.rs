//! Writes YAML like PyYAML's `safe_dump`: blocks, sorted names, only ASCII.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Result;

use super::float;
use super::typed::Typed;
use super::{Text, Value};
use crate::error::invalid;

/// Longer names use the explicit form: PyYAML does not find the colon after 1024 characters.
const LONGEST_NAME: usize = 100;

/// Writes a value as YAML.
///
/// # Errors
/// [`sendoff::ErrorKind::Invalid`] for a `Decimal`, a `UUID` or a `time`, which Celery cannot write as YAML either.
pub fn write_yaml(value: &Value) -> Result<String> {
    let mut yaml = String::new();
    write(&mut yaml, value, 0)?;
    if !yaml.ends_with('\n') {
        yaml.push('\n');
    }
    Ok(yaml)
}

/// Writes a value at the end of a line; its further lines start with `indent` spaces.
fn write(yaml: &mut String, value: &Value, indent: usize) -> Result<()> {
    match value {
        Value::List(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    line(yaml, indent);
                }
                yaml.push_str("- ");
                write(yaml, item, indent + 2)?;
            }
        }
        Value::Map(entries) if !entries.is_empty() && Typed::of(value).is_none() => {
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
            for (at, (name, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    line(yaml, indent);
                }
                entry(yaml, name, value, indent)?;
            }
        }
        scalar => write_scalar(yaml, scalar)?,
    }
    Ok(())
}

fn entry(yaml: &mut String, name: &Text, value: &Value, indent: usize) -> Result<()> {
    if name.as_bytes().len() > LONGEST_NAME {
        yaml.push_str("? ");
        write_text(yaml, name);
        line(yaml, indent);
        yaml.push_str(": ");
        return write(yaml, value, indent + 2);
    }
    write_text(yaml, name);
    yaml.push(':');
    match value {
        // The dashes of a list are below the name, without extra indentation.
        Value::List(items) if !items.is_empty() => {
            line(yaml, indent);
            write(yaml, value, indent)
        }
        Value::Map(entries) if !entries.is_empty() && Typed::of(value).is_none() => {
            line(yaml, indent + 2);
            write(yaml, value, indent + 2)
        }
        scalar => {
            yaml.push(' ');
            write_scalar(yaml, scalar)
        }
    }
}

fn line(yaml: &mut String, indent: usize) {
    yaml.push('\n');
    yaml.extend(std::iter::repeat_n(' ', indent));
}

fn write_scalar(yaml: &mut String, value: &Value) -> Result<()> {
    match value {
        Value::Null => yaml.push_str("null"),
        Value::Bool(true) => yaml.push_str("true"),
        Value::Bool(false) => yaml.push_str("false"),
        Value::Int(literal) => yaml.push_str(literal),
        Value::Float(literal) => yaml.push_str(&yaml_float(float::parse(literal))),
        Value::Text(text) => write_text(yaml, text),
        Value::List(_) => yaml.push_str("[]"),
        Value::Map(_) => match Typed::of(value) {
            None => yaml.push_str("{}"),
            Some(typed) => yaml.push_str(&yaml_typed(&typed)?),
        },
    }
    Ok(())
}

fn yaml_typed(typed: &Typed<'_>) -> Result<String> {
    Ok(match typed {
        Typed::DateTime(date, time, offset) => {
            let zone = offset.map(|offset| {
                let seconds = offset.seconds();
                let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
                format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            });
            let fraction = match time.subsec_nanosecond() / 1000 {
                0 => String::new(),
                micros => format!(".{micros:06}"),
            };
            let clock = time.strftime("%H:%M:%S");
            format!("{date} {clock}{fraction}{}", zone.unwrap_or_default())
        }
        Typed::Date(date) => date.to_string(),
        Typed::Bytes(bytes) => format!("!!binary \"{}\"", STANDARD.encode(bytes)),
        Typed::Time(..) | Typed::Decimal(_) | Typed::Uuid(_) => {
            return Err(invalid(
                "the task cannot be encoded as YAML",
                "it has an argument that is a decimal, a UUID or a time of day",
                "use the serializer json for this task",
            ));
        }
    })
}

/// YAML parses a number as a float only if it has a point, and an exponent only with a sign.
fn yaml_float(number: f64) -> String {
    match float::repr(number).as_str() {
        "nan" => ".nan".to_owned(),
        "inf" => ".inf".to_owned(),
        "-inf" => "-.inf".to_owned(),
        digits => match digits.split_once('e') {
            Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0e{exponent}"),
            _ => digits.to_owned(),
        },
    }
}

fn write_text(yaml: &mut String, text: &Text) {
    if let Some(plain) = text.as_str().filter(|text| is_plain(text)) {
        yaml.push_str(plain);
        return;
    }
    yaml.push('"');
    for code in text.codes() {
        // Writing into a string cannot fail.
        let _ = match code {
            0x22 => yaml.write_str("\\\""),
            0x5c => yaml.write_str("\\\\"),
            0x20..0x7f => yaml.write_char(char::from(code as u8)),
            0..0x100 => write!(yaml, "\\x{code:02X}"),
            0x100..0x1_0000 => write!(yaml, "\\u{code:04X}"),
            _ => write!(yaml, "\\U{code:08X}"),
        };
    }
    yaml.push('"');
}

/// Whether a text needs no quotes: it does not parse as a number, date, boolean or null.
fn is_plain(text: &str) -> bool {
    const OTHER_MEANING: &[&str] = &["y", "n", "yes", "no", "true", "false", "on", "off", "null"];
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
        && !OTHER_MEANING.contains(&text.to_ascii_lowercase().as_str())
}
