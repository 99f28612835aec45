//! Templates for whole request bodies.

mod place;

#[cfg(test)]
mod tests;

use std::fmt;

use sendoff::{Error, ErrorKind, Outgoing, Reason, Result};
use serde::de::IgnoredAny;

use crate::field::{Field, with_default};
use crate::template::Unfilled;
use place::{Position, Positions};

/// The name of the payload in a template.
const PAYLOAD: &str = "payload";

/// A body with fields of the message in braces, as in [`Template`](crate::Template), and `{payload}`.
///
/// A brace starts a field only if a lower-case letter follows it. All other braces are literal, so JSON needs no
/// escaping: `{"event": "{topic}", "order": {payload}}`. Write `{{` for a literal brace before a lower-case letter.
///
/// A field's content cannot break the syntax around it. In JSON a field inside quotes is escaped; a field outside
/// quotes becomes a JSON value: text is quoted, numbers are not, the payload is inserted as it is. A default outside
/// quotes must be JSON, too: `{key|null}`. In forms fields are percent-encoded, in XML and HTML they are written with
/// entities, elsewhere they are inserted as they are.
#[derive(Clone, PartialEq, Eq)]
pub struct BodyTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(What, Option<String>, Position),
}

#[derive(Clone, PartialEq, Eq)]
enum What {
    Field(Field),
    Payload,
}

impl BodyTemplate {
    /// Parses a template for a body of this content type.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`]. The error does not quote the text, which may hold a secret.
    pub fn new(text: &str, content_type: &str) -> Result<Self> {
        let mut places = Positions::of(content_type);
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find('{') {
            let (before, behind) = (&rest[..at], &rest[at + 1..]);
            plain.push_str(before);
            if begins_field(behind) {
                let end = behind
                    .find('}')
                    .ok_or_else(|| unusable("a field is not closed".to_owned()))?;
                let place = places.after(&plain);
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(field(&behind[..end], place)?);
                rest = &behind[end + 1..];
            } else {
                let doubled = behind.strip_prefix('{').filter(|behind| begins_field(behind));
                plain.push('{');
                rest = doubled.unwrap_or(behind);
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        let body = Self { parts };
        if places.is_json() {
            body.check_json()?;
        }
        Ok(body)
    }

    /// Builds the body for a message.
    ///
    /// # Errors
    /// The reason why this message can never have a body.
    pub fn fill(&self, outgoing: &Outgoing) -> std::result::Result<Vec<u8>, Reason> {
        let mut out = Vec::with_capacity(outgoing.payload.len() + 256);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Field(What::Payload, _, place) => place.write_payload(&outgoing.payload, &mut out)?,
                Part::Field(What::Field(field), default, place) => match (field.of(outgoing), default) {
                    (Some(value), _) => place.write(&value, field.is_number(), &mut out),
                    (None, Some(default)) => place.write_default(default, &mut out),
                    (None, None) => return Err(Unfilled::new("", field).wanted_by("the sink's body template").into()),
                },
            }
        }
        Ok(out)
    }

    /// Checks that the filled template is JSON, whatever the fields contain.
    fn check_json(&self) -> Result<()> {
        let mut specimen = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => specimen.push_str(text),
                Part::Field(_, Some(default), Position::Json) => {
                    if serde_json::from_str::<IgnoredAny>(default).is_err() {
                        return Err(unusable(
                            "a default outside quotes is not JSON; use, for example, null, 0 or \"none\"".to_owned(),
                        ));
                    }
                    specimen.push('0');
                }
                Part::Field(..) => specimen.push('0'),
            }
        }
        match serde_json::from_str::<IgnoredAny>(&specimen) {
            Ok(_) => Ok(()),
            Err(error) => Err(unusable(format!("the filled template is not JSON: {error}"))),
        }
    }
}

fn begins_field(behind: &str) -> bool {
    behind.starts_with(|letter: char| letter.is_ascii_lowercase())
}

fn field(text: &str, place: Position) -> Result<Part> {
    let (name, default) = with_default(text);
    let what = match name {
        PAYLOAD => What::Payload,
        name => What::Field(
            name.parse()
                .map_err(|_| unusable("a brace before a lower-case letter does not start a known field".to_owned()))?,
        ),
    };
    Ok(Part::Field(what, default.map(str::to_owned), place))
}

fn unusable(why: String) -> Error {
    Error::new(ErrorKind::Invalid, "the template `body` of the sink is invalid")
        .because(why)
        .next_step(
            "use a template like {\"event\": \"{topic}\", \"order\": {payload}}; fields are payload, id, topic, key, \
             aggregate_type, aggregate_id, schema_version, priority, created_at and header:NAME",
        )
}

/// Prints no text, because it may hold a secret.
impl fmt::Debug for BodyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
