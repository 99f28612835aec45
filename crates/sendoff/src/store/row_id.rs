//! The id of a row, as its table has it.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

/// The id of a message in the spelling of its row. A store that keeps ids in text has to find a row again whose producer
/// wrote a UUID in another way, or something that is no UUID at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowId {
    /// A UUID; in text, in lower case with hyphens.
    Uuid(Uuid),
    /// Any other text, byte by byte.
    Text(Arc<[u8]>),
}

impl RowId {
    /// The id that a column of text has.
    pub fn from_text(text: &[u8]) -> Self {
        let uuid = std::str::from_utf8(text)
            .ok()
            .and_then(|text| Uuid::parse_str(text).ok());
        let mut usual = Uuid::encode_buffer();
        match uuid {
            Some(uuid) if uuid.hyphenated().encode_lower(&mut usual).as_bytes() == text => Self::Uuid(uuid),
            _ => Self::Text(text.into()),
        }
    }

    /// The bytes that a column of text has.
    pub fn with_text<T>(&self, act: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Uuid(uuid) => act(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()).as_bytes()),
            Self::Text(text) => act(text),
        }
    }

    /// The UUID, in a store that keeps ids as UUIDs. Any other text is nobody's id there.
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
