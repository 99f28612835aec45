//! Parses JSON like Python's own parser.

use sendoff::Result;

use super::{Text, Value};
use crate::error::invalid;

/// The deepest nesting. Python's parser fails at about twice that.
const DEEPEST: usize = 400;

/// Parses JSON like Python. It also accepts what Python writes: `NaN`, `Infinity`, `-Infinity`, and lone surrogates. Of
/// two entries with the same name, the later one counts.
///
/// # Errors
/// [`sendoff::ErrorKind::Invalid`], with the position, and never with the text.
pub fn read_json(bytes: &[u8]) -> Result<Value> {
    let mut reader = Reader { bytes, at: 0 };
    let value = reader.value(0).and_then(|value| {
        reader.space();
        (reader.at == bytes.len())
            .then_some(value)
            .ok_or("there is text after its end")
    });
    value.map_err(|why| {
        invalid(
            "the stored task is not JSON",
            format!("{why}, at byte {}", reader.at),
            "emit the task with a JSON payload",
        )
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Read<T> = std::result::Result<T, &'static str>;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.bytes[self.at..].starts_with(word.as_bytes());
        self.at += if is { word.len() } else { 0 };
        is
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Read<Value> {
        if depth > DEEPEST {
            return Err("it is nested too deeply");
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.text().map(Value::Text),
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Read<Value> {
        for (word, value) in [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
        ] {
            if self.take_word(word) {
                return Ok(value);
            }
        }
        for word in ["NaN", "Infinity", "-Infinity"] {
            if self.take_word(word) {
                return Ok(Value::Float(word.to_owned()));
            }
        }
        self.number()
    }

    fn number(&mut self) -> Read<Value> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        let mut float = false;
        if self.take(b'.') {
            float = true;
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            float = true;
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        let literal = String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned();
        Ok(if float {
            Value::Float(literal)
        } else {
            Value::Int(literal)
        })
    }

    fn digits(&mut self) -> Read<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err("a value is expected")
        }
    }

    fn list(&mut self, depth: usize) -> Read<Value> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.take(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take(b']') {
                return Ok(Value::List(items));
            }
            if !self.take(b',') {
                return Err("a comma or the end of a list is expected");
            }
        }
    }

    fn map(&mut self, depth: usize) -> Read<Value> {
        self.at += 1;
        let mut entries: Vec<(Text, Value)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        self.space();
        if self.take(b'}') {
            return Ok(Value::Map(entries));
        }
        loop {
            self.space();
            let name = self.text()?;
            self.space();
            if !self.take(b':') {
                return Err("a colon is expected");
            }
            let value = self.value(depth + 1)?;
            match places.get(&name) {
                Some(place) => {
                    let entry: &mut (Text, Value) = &mut entries[*place];
                    entry.1 = value;
                }
                None => {
                    places.insert(name.clone(), entries.len());
                    entries.push((name, value));
                }
            }
            self.space();
            if self.take(b'}') {
                return Ok(Value::Map(entries));
            }
            if !self.take(b',') {
                return Err("a comma or the end of an object is expected");
            }
        }
    }

    fn text(&mut self) -> Read<Text> {
        if !self.take(b'"') {
            return Err("a string is expected");
        }
        let mut text = Text::default();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
            {
                self.at += 1;
            }
            let plain = std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| "a string is not UTF-8")?;
            text.push_str(plain);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    let code = self.escape()?;
                    text.push(code);
                }
                Some(_) => return Err("a string contains a control character"),
                None => return Err("a string does not end"),
            }
        }
    }

    fn escape(&mut self) -> Read<u32> {
        let escape = self.peek().ok_or("a string does not end")?;
        self.at += 1;
        Ok(match escape {
            b'"' | b'\\' | b'/' => u32::from(escape),
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            b'u' => {
                let high = self.hex()?;
                let before_low = self.at;
                if (0xd800..0xdc00).contains(&high) && self.take_word("\\u") {
                    let low = self.hex()?;
                    if (0xdc00..0xe000).contains(&low) {
                        return Ok(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00));
                    }
                    self.at = before_low;
                }
                high
            }
            _ => return Err("a string contains an unknown escape"),
        })
    }

    fn hex(&mut self) -> Read<u32> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or("a string does not end")?;
        self.at += 4;
        digits.iter().try_fold(0, |code, digit| {
            let digit = char::from(*digit)
                .to_digit(16)
                .ok_or("a string contains an unknown escape")?;
            Ok(code << 4 | digit)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::python::write_json;

    fn written(json: &str) -> String {
        write_json(&read_json(json.as_bytes()).unwrap())
    }

    #[test]
    fn values_come_back_as_python_would_write_them() {
        for (json, python) in [
            (" [1,2 , 3]\n", "[1, 2, 3]"),
            (r#"{"b":1,"a":{"n":null}}"#, r#"{"b": 1, "a": {"n": null}}"#),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a": 3, "b": 2}"#),
            ("[NaN,Infinity,-Infinity]", "[NaN, Infinity, -Infinity]"),
            (
                "[1.10,1e300,-0,12345678901234567890123]",
                "[1.10, 1e300, -0, 12345678901234567890123]",
            ),
            (r#""é\u00e9\ud83d\ude00\/""#, r#""\u00e9\u00e9\ud83d\ude00/""#),
            (r#""\ud800""#, r#""\ud800""#),
            (r#""\ud800\u0041""#, r#""\ud800A""#),
            (r#""\ud800\ud800\udc00""#, r#""\ud800\ud800\udc00""#),
            (r#""a\u0000\b\f\n\r\t\"\\""#, r#""a\u0000\b\f\n\r\t\"\\""#),
            ("[]", "[]"),
            ("{}", "{}"),
        ] {
            assert_eq!(written(json), python);
        }
    }

    #[test]
    fn what_python_refuses_is_refused_without_quoting_it() {
        for bad in [
            "",
            "[",
            "[1,]",
            "{\"a\"}",
            "{a:1}",
            "01",
            "1.",
            "+1",
            ".5",
            "1e",
            "\"\\x\"",
            "\"\\u12\"",
            "nul",
            "[1] 2",
            "\"a\nb\"",
            "\"secret",
            "-",
        ] {
            let error = read_json(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("at byte") && !error.contains("secret"), "{bad}: {error}");
        }
        assert!(read_json(b"\"\xff\"").is_err());
    }

    #[test]
    fn deep_nesting_is_refused_and_does_not_overflow() {
        let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read_json(deep(400).as_bytes()).is_ok());
        assert!(read_json(deep(100_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes: Vec<u8>) {
            let _ = read_json(&bytes);
        }

        #[test]
        fn all_that_serde_json_writes_is_read(text: String, number: f64, integer: i128) {
            let json = serde_json::to_string(&(&text, number, integer)).unwrap();
            let Value::List(items) = read_json(json.as_bytes()).unwrap() else { panic!("a list") };
            prop_assert_eq!(&items[0], &Value::Text(text.into()));
            prop_assert_eq!(&items[2], &Value::Int(integer.to_string()));
            if number.is_finite() {
                prop_assert_eq!(items[1].as_f64(), Some(number));
            }
        }
    }
}
