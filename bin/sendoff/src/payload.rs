//! Payloads on a terminal: JSON indented, text unchanged, anything else as a hex dump.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use crate::output::printable_lines;

/// How many bytes a hex dump shows.
const DUMPED: usize = 256;

/// A text payload. JSON is indented without parsing it into numbers and maps, so that digits and the order of fields
/// stay exactly as they were sent.
pub(crate) fn text(payload: &str, json: bool) -> String {
    let mut shown = match serde_json::from_str::<&RawValue>(payload) {
        Ok(value) if json => printable_lines(&laid_out(value.get())),
        Ok(_) | Err(_) => printable_lines(payload),
    };
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    shown
}

/// The first bytes of a binary payload.
pub(crate) fn hexdump(encoded: &str) -> String {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let mut dump = String::new();
    for (at, line) in bytes.chunks(16).take(DUMPED / 16).enumerate() {
        let hex: String = line.iter().map(|byte| format!("{byte:02x} ")).collect();
        let text: String = line
            .iter()
            .map(|byte| match byte {
                b' '..=b'~' => char::from(*byte),
                _ => '.',
            })
            .collect();
        let _ = writeln!(dump, "{:08x}  {hex:<48} |{text}|", at * 16);
    }
    if bytes.len() > DUMPED {
        let _ = writeln!(dump, "… {} more bytes", bytes.len() - DUMPED);
    }
    dump
}

/// Valid JSON, indented, with one value per line.
fn laid_out(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut chars = json.chars().filter({
        // White space between values is dropped; inside strings it is kept.
        let (mut in_string, mut escaped) = (false, false);
        move |c| {
            if in_string {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                in_string = !ends;
                return true;
            }
            in_string = *c == '"';
            !c.is_ascii_whitespace()
        }
    });
    let (mut in_string, mut escaped) = (false, false);
    let mut next = chars.next();
    while let Some(c) = next {
        next = chars.next();
        if in_string {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            in_string = !ends;
            out.push(c);
            continue;
        }
        match c {
            '{' | '[' if next == Some(if c == '{' { '}' } else { ']' }) => out.push(c),
            '{' | '[' => {
                depth += 1;
                out.push(c);
                new_line(&mut out, depth);
            }
            '}' | ']' => {
                if !out.ends_with(['{', '[']) {
                    depth = depth.saturating_sub(1);
                    new_line(&mut out, depth);
                }
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_laid_out_with_every_digit_and_in_its_order() {
        let payload =
            r#"{"b":1.10,"a":[],"c":{ },"n":12345678901234567890123, "s":"x, {\"y\": [z]} ", "l":[1,{"k":null}]}"#;
        let wanted = r#"{
  "b": 1.10,
  "a": [],
  "c": {},
  "n": 12345678901234567890123,
  "s": "x, {\"y\": [z]} ",
  "l": [
    1,
    {
      "k": null
    }
  ]
}
"#;
        assert_eq!(text(payload, true), wanted);
        assert_eq!(text("\"a\\\\\"", true), "\"a\\\\\"\n");
    }

    #[test]
    fn text_that_is_no_json_stays_as_it_is() {
        assert_eq!(text("{not json", true), "{not json\n");
        assert_eq!(text("{\"a\":1}", false), "{\"a\":1}\n");
        assert_eq!(text("", true), "");
        assert_eq!(text("a\u{202e}b\nc", false), "a\\u{202e}b\nc\n");
    }

    #[test]
    fn bytes_are_dumped_up_to_a_limit() {
        let dump = hexdump(&STANDARD.encode([0, 65, 255]));
        assert_eq!(dump, format!("00000000  {:<48} |.A.|\n", "00 41 ff"));
        let long = hexdump(&STANDARD.encode([7; 300]));
        assert!(long.ends_with("… 44 more bytes\n"), "{long}");
        assert_eq!(long.lines().count(), 17);
    }
}
