//! Cursors: a text says where a list continues. It is valid only for the same list.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sendoff::{Error, ErrorKind, Result};

use super::ListOrder;
use super::stream::Key;
use crate::written::WrittenFilter;

/// The first byte of a cursor, so that a later version can recognise cursors of this version.
const VERSION: u8 = 1;
const LENGTH: usize = 1 + 8 + 8 + 8 + 8 + 4;

/// Where a list continues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cursor {
    /// The first row of the next page.
    pub(crate) key: Key,
    /// What ages in the filter count back from.
    pub(crate) as_of: SystemTime,
}

/// Tells lists with another filter or order apart.
pub(crate) fn fingerprint(of: &str, filter: &WrittenFilter, order: ListOrder) -> u64 {
    hash(format!("{of} {filter:?} {order:?}").as_bytes())
}

impl Cursor {
    /// As a text.
    pub(crate) fn write(self, fingerprint: u64) -> String {
        let as_of = self.as_of.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let micros = u64::try_from(as_of.as_micros()).unwrap_or(u64::MAX);
        let mut bytes = vec![VERSION];
        bytes.extend(fingerprint.to_be_bytes());
        bytes.extend(micros.to_be_bytes());
        bytes.extend(self.key.0.to_be_bytes());
        bytes.extend(self.key.1.to_be_bytes());
        let check = hash(&bytes).to_be_bytes();
        bytes.extend(check.iter().take(4));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a cursor of the list with this fingerprint.
    pub(crate) fn read(text: &str, fingerprint: u64) -> Result<Self> {
        let invalid = || {
            Error::new(ErrorKind::Invalid, format!("invalid cursor {text:?}"))
                .because("the cursor was cut off or changed, or comes from another version of sendoff")
                .next_step("copy `next` of a page unchanged, or start again without a cursor")
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid())?;
        if bytes.len() != LENGTH || bytes.first() != Some(&VERSION) {
            return Err(invalid());
        }
        let (content, check) = bytes.split_at(LENGTH - 4);
        if check != &hash(content).to_be_bytes()[..4] {
            return Err(invalid());
        }
        let part = |at: usize| -> [u8; 8] {
            let mut part = [0; 8];
            part.copy_from_slice(&content[at..at + 8]);
            part
        };
        if u64::from_be_bytes(part(1)) != fingerprint {
            return Err(Error::new(ErrorKind::Invalid, "the cursor belongs to another list")
                .because("the cursor was made with another filter or another order")
                .next_step("use the same filter and order as for the previous page, or start again without a cursor"));
        }
        Ok(Self {
            as_of: SystemTime::UNIX_EPOCH + Duration::from_micros(u64::from_be_bytes(part(9))),
            key: Key(i64::from_be_bytes(part(17)), i64::from_be_bytes(part(25))),
        })
    }
}

/// FNV-1a: the same in every version and on every machine.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::parse_filter;

    fn print(pairs: &[&str]) -> u64 {
        fingerprint("messages", &parse_filter(pairs).unwrap(), ListOrder::default())
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = Cursor {
            key: Key(-5, i64::MIN),
            as_of: SystemTime::UNIX_EPOCH + Duration::from_micros(17),
        };
        let text = cursor.write(print(&["topic=a"]));
        assert_eq!(Cursor::read(&text, print(&["topic=a"])).unwrap(), cursor);
        let of_other = Cursor::read(&text, print(&["topic=b"])).unwrap_err().to_string();
        assert!(
            of_other.contains("another list") && of_other.contains("filter"),
            "{of_other}"
        );
    }

    #[test]
    fn a_changed_cursor_is_refused() {
        let cursor = Cursor {
            key: Key(0, 9),
            as_of: SystemTime::UNIX_EPOCH,
        };
        let text = cursor.write(1);
        for changed in [&text[1..], &text[..20], "", "next", &text.replacen('A', "B", 1)] {
            let error = Cursor::read(changed, 1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("invalid cursor"), "{error}");
        }
    }
}
