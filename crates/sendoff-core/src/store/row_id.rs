//! The id of a row, as its table stores it.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The id of a message, exactly as its row has it. A store that keeps ids as text must find a row again even if its
/// producer wrote the UUID in another format, or wrote text that is not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowId {
    /// A UUID; as text, in lower case with hyphens.
    Uuid(Uuid),
    /// Any other text, as bytes.
    Text(Arc<[u8]>),
}

impl RowId {
    /// The id in a text column.
    pub fn from_text(text: &[u8]) -> Self {
        // As long as only the usual format is, and without capitals: there is one spelling of a UUID that is both.
        let is_usual = text.len() == Hyphenated::LENGTH && !text.iter().any(u8::is_ascii_uppercase);
        match Uuid::try_parse_ascii(text) {
            Ok(uuid) if is_usual => Self::Uuid(uuid),
            _ => Self::Text(text.into()),
        }
    }

    /// Calls `act` with the id as the bytes of a text column.
    pub fn with_text<T>(&self, act: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Uuid(uuid) => act(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()).as_bytes()),
            Self::Text(text) => act(text),
        }
    }

    /// Parses the id as a UUID, in any of the usual formats, because producers in other languages use other formats.
    pub(crate) fn parse(&self) -> Result<Uuid, String> {
        match self {
            Self::Uuid(uuid) => Ok(*uuid),
            Self::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Uuid::parse_str(text).map_err(|_| "the id is not a UUID".to_owned()),
                Err(_) => Err("the column id is not UTF-8".to_owned()),
            },
        }
    }

    /// The id as a UUID, for a store that keeps ids as UUIDs. Other text becomes the nil UUID, which matches no row of
    /// such a store.
    pub fn uuid(&self) -> Uuid {
        match self {
            Self::Uuid(uuid) => *uuid,
            Self::Text(_) => Uuid::nil(),
        }
    }
}

impl From<Uuid> for RowId {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(uuid)
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(uuid) => uuid.fmt(f),
            Self::Text(text) => write!(f, "{:?}", String::from_utf8_lossy(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_the_spelling_of_its_row() {
        let uuid = Uuid::from_u128(0xabcd);
        let usual = uuid.to_string();
        assert_eq!(RowId::from_text(usual.as_bytes()), RowId::Uuid(uuid));
        for other in [
            usual.to_uppercase(),
            uuid.simple().to_string(),
            "no id".to_owned(),
            String::new(),
        ] {
            let id = RowId::from_text(other.as_bytes());
            assert_eq!(id, RowId::Text(other.as_bytes().into()));
            assert!(id.with_text(|text| text == other.as_bytes()));
            assert_eq!(id.uuid(), Uuid::nil());
        }
        assert!(RowId::Uuid(uuid).with_text(|text| text == usual.as_bytes()));
    }
}
