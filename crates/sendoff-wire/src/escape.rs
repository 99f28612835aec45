//! Escaping of text that protocols cannot carry.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Appends a character as the percent-encoded bytes of its UTF-8 form.
pub fn percent(letter: char, out: &mut String) {
    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
        // Writing to a string cannot fail.
        let _ = write!(out, "%{byte:02X}");
    }
}

/// The header that lists, separated by commas, the headers whose values are percent-encoded.
pub const ENCODED: &str = "sendoff-encoded";
/// The header that lists, separated by commas, the headers whose names are percent-encoded.
pub const ENCODED_NAMES: &str = "sendoff-encoded-names";

/// Encodes headers for protocols that cannot carry every character. It collects the names of the encoded headers in
/// [`Encodings::headers`], so that a consumer can decode them.
#[derive(Debug, Default)]
pub struct Encodings {
    values: String,
    names: String,
}

impl Encodings {
    /// Returns a header's name unchanged if all its characters are safe and none is a comma. Otherwise the name is
    /// percent-encoded, including `%` and spaces.
    pub fn name<'a>(&mut self, name: &'a str, is_safe: impl Fn(char) -> bool) -> Cow<'a, str> {
        let safe = encoded(name, |letter| letter != ',' && is_safe(letter));
        if let Cow::Owned(safe) = &safe {
            add(safe, &mut self.names);
        }
        safe
    }

    /// Returns a header's value unchanged if all its characters are safe and it has no space at its ends, which readers
    /// would trim. Otherwise the value is percent-encoded, including `%` and spaces. `name` is the name that
    /// [`Encodings::name`] returned.
    pub fn value<'a>(&mut self, name: &str, value: &'a str, is_safe: impl Fn(char) -> bool) -> Cow<'a, str> {
        let safe = encoded(value, is_safe);
        if matches!(safe, Cow::Owned(_)) {
            add(name, &mut self.values);
        }
        safe
    }

    /// The headers that list the encoded headers; empty if nothing was encoded.
    pub fn headers(self) -> impl Iterator<Item = (&'static str, String)> {
        let marks = [(ENCODED, self.values), (ENCODED_NAMES, self.names)];
        marks.into_iter().filter(|(_, names)| !names.is_empty())
    }

    /// Whether a header has the name of one of [`Encodings::headers`]. A message must not bring such a header.
    pub fn is_own(name: &str) -> bool {
        name.eq_ignore_ascii_case(ENCODED) || name.eq_ignore_ascii_case(ENCODED_NAMES)
    }
}

fn add(name: &str, list: &mut String) {
    if !list.is_empty() {
        list.push(',');
    }
    list.push_str(name);
}

fn encoded(text: &str, is_safe: impl Fn(char) -> bool) -> Cow<'_, str> {
    let at_ends = text.starts_with(' ') || text.ends_with(' ');
    // Nearly all text is ASCII, whose bytes need no decoding.
    let all_safe = if text.is_ascii() {
        text.bytes().all(|byte| is_safe(char::from(byte)))
    } else {
        text.chars().all(&is_safe)
    };
    if !at_ends && all_safe {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if is_safe(letter) && letter != '%' && letter != ' ' {
            safe.push(letter);
        } else {
            percent(letter, &mut safe);
        }
    }
    safe.into()
}

/// Whether every protocol with Unicode can carry a character: the opposite of [`is_unsafe`].
#[inline]
pub fn is_safe(letter: char) -> bool {
    !is_unsafe(letter)
}

/// Whether brokers may refuse a character, or close the connection because of it: control characters (a line break
/// would end a header, or start another), and Unicode's noncharacters.
#[inline]
pub fn is_unsafe(letter: char) -> bool {
    let code = u32::from(letter);
    letter.is_control() || (0xFDD0..=0xFDEF).contains(&code) || code & 0xFFFE == 0xFFFE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_can_be_carried_stays_as_it_is_and_is_not_told() {
        let mut encodings = Encodings::default();
        for text in ["", "a b", "100%", "a=b%20c", "ä", "\u{2028}"] {
            let value = encodings.value("x", text, is_safe);
            assert!(matches!(value, Cow::Borrowed(same) if same == text), "{text:?}");
            let name = encodings.name(text, is_safe);
            assert!(matches!(name, Cow::Borrowed(same) if same == text), "{text:?}");
        }
        assert_eq!(encodings.headers().count(), 0);
    }

    #[test]
    fn what_would_break_out_is_encoded_as_a_whole_and_told() {
        let mut encodings = Encodings::default();
        assert_eq!(encodings.value("a", "a\r\nb: 100%", is_safe), "a%0D%0Ab:%20100%25");
        assert_eq!(encodings.value("b", " a", is_safe), "%20a");
        assert_eq!(encodings.value("c", "\u{fffe}\u{85}", is_safe), "%EF%BF%BE%C2%85");
        assert_eq!(encodings.name("x,y 100%", is_safe), "x%2Cy%20100%25");
        assert_eq!(encodings.name("ä", |letter| letter.is_ascii()), "%C3%A4");
        let told: Vec<_> = encodings.headers().collect();
        let names = "x%2Cy%20100%25,%C3%A4".to_owned();
        assert_eq!(told, [(ENCODED, "a,b,c".to_owned()), (ENCODED_NAMES, names)]);
        assert!(Encodings::is_own("Sendoff-Encoded") && Encodings::is_own(ENCODED_NAMES));
    }
}
