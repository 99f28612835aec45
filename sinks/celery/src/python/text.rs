//! A Python string: code points, including lone surrogates.

use std::fmt;

/// Text that may contain lone surrogates, like Python's strings and JSON's escapes. It is stored as UTF-8 in which a
/// surrogate has the three bytes of its code point, which is also how Celery writes it to AMQP.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(Vec<u8>);

impl Text {
    /// The bytes of the text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of the text, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The text as a Rust string; `None` if it contains a lone surrogate.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Whether the text equals this string.
    pub fn is(&self, text: &str) -> bool {
        self.0 == text.as_bytes()
    }

    /// Appends a code point. Two surrogates of a pair stay two code points.
    pub fn push(&mut self, code: u32) {
        if let Some(character) = char::from_u32(code) {
            self.0.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            let low_six = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
            self.0
                .extend_from_slice(&[0xe0 | (code >> 12 & 0x0f) as u8, low_six(6), low_six(0)]);
        }
    }

    /// Appends a Rust string.
    pub fn push_str(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends another text.
    pub fn push_text(&mut self, text: &Text) {
        self.0.extend_from_slice(&text.0);
    }

    /// The code points of the text.
    pub fn codes(&self) -> impl Iterator<Item = u32> + '_ {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (&first, _) = rest.split_first()?;
            let length = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            let (bytes, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            let start = u32::from(if length == 1 { first } else { first & (0x7f >> length) });
            let codes = bytes.iter().skip(1);
            Some(codes.fold(start, |code, byte| code << 6 | u32::from(byte & 0x3f)))
        })
    }

    /// The number of code points, like Python's `len`.
    pub fn len(&self) -> usize {
        self.0.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first `count` code points of the text.
    #[must_use]
    pub fn start(&self, count: usize) -> Text {
        let starts = self.0.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
        let end = starts.map(|(at, _)| at).nth(count).unwrap_or(self.0.len());
        Text(self.0[..end].to_vec())
    }

    /// The text before the last occurrence of an ASCII character; the whole text if there is none.
    #[must_use]
    pub fn before_last(&self, ascii: u8) -> Text {
        let end = self.0.iter().rposition(|byte| *byte == ascii).unwrap_or(self.0.len());
        Text(self.0[..end].to_vec())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_lone_surrogate_has_the_bytes_that_python_gives_it() {
        let mut text = Text::from("a");
        text.push(0xd800);
        assert_eq!(text.as_bytes(), b"a\xed\xa0\x80");
        assert_eq!((text.len(), text.as_str()), (2, None));
        assert_eq!(text.codes().collect::<Vec<_>>(), [0x61, 0xd800]);
        assert_eq!(text.start(1), Text::from("a"));
    }

    proptest! {
        #[test]
        fn code_points_come_back(codes in proptest::collection::vec(0_u32..0x11_0000, 0..40), cut in 0_usize..50) {
            let mut text = Text::default();
            for code in &codes {
                text.push(*code);
            }
            prop_assert_eq!(text.codes().collect::<Vec<_>>(), codes.clone());
            prop_assert_eq!(text.len(), codes.len());
            prop_assert_eq!(text.start(cut).codes().collect::<Vec<_>>(), &codes[..cut.min(codes.len())]);
        }
    }
}
