//! Whole bodies made out of a message.

mod place;

#[cfg(test)]
mod tests;

use std::fmt;

use sendoff::{Delivery, Error, ErrorKind, Reason, Result};
use serde::de::IgnoredAny;

use crate::field::{Field, with_default};
use crate::template::Unfilled;
use place::{Place, Places};

/// What stands for the payload.
const PAYLOAD: &str = "payload";

/// A body with fields of the message in braces, as in [`Template`](crate::Template), and `{payload}`.
///
/// A brace begins a field only if a small letter follows it; all others stand for themselves, so that JSON is written as
/// it is: `{"event": "{topic}", "order": {payload}}`. A brace before a small letter is written twice.
///
/// What a field holds cannot break out of its place. In JSON it is escaped where it stands in quotes, and a JSON value of
/// its own where it does not: text in quotes, numbers without, the payload as it is. A default outside quotes is JSON, too:
/// `{key|null}`. In forms fields are percent-encoded, in XML and HTML written with entities, elsewhere they go as they are.
#[derive(Clone, PartialEq, Eq)]
pub struct BodyTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(What, Option<String>, Place),
}

#[derive(Clone, PartialEq, Eq)]
enum What {
    Field(Field),
    Payload,
}

impl BodyTemplate {
    /// Reads a template for a body of this content type.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], without the text, which may hold a secret.
    pub fn new(text: &str, content_type: &str) -> Result<Self> {
        let mut places = Places::of(content_type);
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

    /// The body for a message.
    ///
    /// # Errors
    /// Why this message can never have one.
    pub fn fill(&self, delivery: &Delivery) -> std::result::Result<Vec<u8>, Reason> {
        let mut out = Vec::with_capacity(delivery.payload.len() + 256);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Field(What::Payload, _, place) => place.write_payload(&delivery.payload, &mut out)?,
                Part::Field(What::Field(field), default, place) => match (field.of(delivery), default) {
                    (Some(value), _) => place.write(&value, field.is_number(), &mut out),
                    (None, Some(default)) => place.write_default(default, &mut out),
                    (None, None) => return Err(Unfilled::new("", field).wanted_by("the body of the sink").into()),
                },
            }
        }
        Ok(out)
    }

    /// Whether what comes out is JSON, as long as every field is written as its place says.
    fn check_json(&self) -> Result<()> {
        let mut specimen = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => specimen.push_str(text),
                Part::Field(_, Some(default), Place::Json) => {
                    if serde_json::from_str::<IgnoredAny>(default).is_err() {
                        return Err(unusable(
                            "a default outside quotes is no JSON, such as null, 0 or \"none\"".to_owned(),
                        ));
                    }
                    specimen.push('0');
                }
                Part::Field(..) => specimen.push('0'),
            }
        }
        match serde_json::from_str::<IgnoredAny>(&specimen) {
            Ok(_) => Ok(()),
            Err(error) => Err(unusable(format!("with its fields filled in, it is no JSON: {error}"))),
        }
    }
}

fn begins_field(behind: &str) -> bool {
    behind.starts_with(|letter: char| letter.is_ascii_lowercase())
}

fn field(text: &str, place: Place) -> Result<Part> {
    let (name, default) = with_default(text);
    let what = match name {
        PAYLOAD => What::Payload,
        name => What::Field(
            name.parse()
                .map_err(|_| unusable("a brace before a small letter begins no field of messages".to_owned()))?,
        ),
    };
    Ok(Part::Field(what, default.map(str::to_owned), place))
}

fn unusable(why: String) -> Error {
    Error::new(ErrorKind::Invalid, "the body of the sink cannot be used")
        .because(why)
        .next_step(
            "write it like {\"event\": \"{topic}\", \"order\": {payload}}; fields are payload, id, topic, key, \
             aggregate_type, aggregate_id, schema_version, priority, created_at and header:NAME",
        )
}

/// Without its text, which may hold a secret.
impl fmt::Debug for BodyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
