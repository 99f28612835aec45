//! Text that protocols would choke on, written so that they do not.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Appends a letter as the percent-encoded bytes of its UTF-8 form.
pub fn percent(letter: char, out: &mut String) {
    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
        // Writing to a string cannot fail.
        let _ = write!(out, "%{byte:02X}");
    }
}

/// A header's value as it is, if every protocol can carry it so: no control characters (a line break would end the
/// header, or begin another), no spaces at its ends (readers trim them), nothing that is no character. Any other is
/// percent-encoded, `%` and spaces included, and has to be named in the header [`ENCODED`], so that it can be read back.
pub fn header_value(value: &str) -> Cow<'_, str> {
    let at_ends = value.starts_with(' ') || value.ends_with(' ');
    if !at_ends && !value.contains(is_unsafe) {
        return value.into();
    }
    let mut safe = String::with_capacity(value.len() + 8);
    for letter in value.chars() {
        if is_unsafe(letter) || letter == '%' || letter == ' ' {
            percent(letter, &mut safe);
        } else {
            safe.push(letter);
        }
    }
    safe.into()
}

/// The header that names, with commas in between, the headers whose values [`header_value`] had to encode.
pub const ENCODED: &str = "sendoff-encoded";

/// Whether brokers may refuse a letter, or the whole connection because of it: control characters, and what Unicode says
/// is no character.
pub fn is_unsafe(letter: char) -> bool {
    let code = u32::from(letter);
    letter.is_control() || (0xFDD0..=0xFDEF).contains(&code) || code & 0xFFFE == 0xFFFE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_any_header_can_carry_stays_as_it_is() {
        for value in ["", "a b", "100%", "a=b%20c", "ä", "\u{2028}"] {
            assert!(
                matches!(header_value(value), Cow::Borrowed(same) if same == value),
                "{value:?}"
            );
        }
    }

    #[test]
    fn a_value_that_would_break_out_is_encoded_as_a_whole() {
        assert_eq!(header_value("a\r\nb: 100%"), "a%0D%0Ab:%20100%25");
        assert_eq!(header_value(" a"), "%20a");
        assert_eq!(header_value("\u{fffe}\u{85}"), "%EF%BF%BE%C2%85");
    }
}
