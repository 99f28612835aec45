//! The position of a field in a body, and how the field is escaped there.

use sendoff::Reason;
use sendoff::envelope::is_json;
use serde_json::value::RawValue;

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// A JSON value, outside quotes.
    Json,
    /// Inside the quotes of a JSON string.
    JsonText,
    /// A name or a value of a form.
    Form,
    /// Between tags, or inside the quotes of an attribute.
    Markup,
    /// Plain text, not escaped.
    Plain,
}

/// Finds the positions of fields, one after the other.
#[derive(Debug)]
pub(super) struct Positions {
    syntax: Position,
    in_quotes: bool,
}

impl Positions {
    pub(super) fn of(content_type: &str) -> Self {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        let is_markup = essence.ends_with("+xml") || essence.ends_with("/xml") || essence == "text/html";
        let syntax = match essence.as_str() {
            _ if is_json(content_type) => Position::Json,
            "application/x-www-form-urlencoded" => Position::Form,
            _ if is_markup => Position::Markup,
            _ => Position::Plain,
        };
        Self {
            syntax,
            in_quotes: false,
        }
    }

    pub(super) fn is_json(&self) -> bool {
        self.syntax == Position::Json
    }

    /// The position after this text, which follows the text of the last call.
    pub(super) fn after(&mut self, text: &str) -> Position {
        if self.syntax != Position::Json {
            return self.syntax;
        }
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '"' => self.in_quotes = !self.in_quotes,
                // An escaped character does not end the string.
                '\\' if self.in_quotes => {
                    letters.next();
                }
                _ => {}
            }
        }
        if self.in_quotes {
            Position::JsonText
        } else {
            Position::Json
        }
    }
}

impl Position {
    /// Writes the value of a field.
    pub(super) fn write(self, value: &str, is_number: bool, out: &mut Vec<u8>) {
        match self {
            Self::Json if !is_number => out.extend_from_slice(quoted(value).as_bytes()),
            Self::JsonText => {
                let quoted = quoted(value);
                out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
            }
            Self::Form => out.extend(url::form_urlencoded::byte_serialize(value.as_bytes()).flat_map(str::bytes)),
            Self::Markup => value.chars().for_each(|letter| write_entity(letter, out)),
            Self::Json | Self::Plain => out.extend_from_slice(value.as_bytes()),
        }
    }

    /// Writes a default. Outside quotes it is already JSON.
    pub(super) fn write_default(self, default: &str, out: &mut Vec<u8>) {
        self.write(default, true, out);
    }

    /// Writes the payload, which may be any bytes.
    pub(super) fn write_payload(self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
        match self {
            Self::Json => match serde_json::from_slice::<&RawValue>(payload) {
                Ok(raw) => out.extend_from_slice(raw.get().as_bytes()),
                Err(_) => {
                    return Err(
                        "the payload is not JSON (put {payload} in quotes in the body template to send it as text, \
                         then retry the message)"
                            .into(),
                    );
                }
            },
            Self::Plain => out.extend_from_slice(payload),
            Self::Form => out.extend(url::form_urlencoded::byte_serialize(payload).flat_map(str::bytes)),
            Self::JsonText | Self::Markup => match std::str::from_utf8(payload) {
                Ok(text) => self.write(text, false, out),
                Err(_) => {
                    return Err(
                        "the payload is not UTF-8 text (remove {payload} from the body template, then retry the \
                         message)"
                            .into(),
                    );
                }
            },
        }
        Ok(())
    }
}

fn quoted(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

fn write_entity(letter: char, out: &mut Vec<u8>) {
    let entity = match letter {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '"' => "&quot;",
        '\'' => "&#39;",
        other => return out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
    };
    out.extend_from_slice(entity.as_bytes());
}
