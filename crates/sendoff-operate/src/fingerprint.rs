//! Fingerprints of errors: their text without numbers, ids, addresses and quoted values.

/// The longest fingerprint, in characters.
const LONGEST: usize = 300;

/// The text of an error with placeholders for what differs from message to message.
///
/// ```
/// use sendoff_operate::error_fingerprint;
///
/// let one = error_fingerprint("connect to 10.0.0.7:5672 failed after 30s: no route for 'order-81'");
/// assert_eq!(one, "connect to <address> failed after <n>s: no route for <text>");
/// ```
pub fn error_fingerprint(error: &str) -> String {
    let chars: Vec<char> = error.chars().collect();
    let mut out = String::with_capacity(error.len());
    let mut at = 0;
    while at < chars.len() && out.len() < LONGEST {
        let c = chars[at];
        let is_inside = at > 0 && chars[at - 1].is_alphanumeric();
        if let Some(end) = quoted(&chars, at).filter(|_| !is_inside) {
            out.push_str("<text>");
            at = end;
        } else if is_word(c)
            || (c == '['
                && chars
                    .get(at + 1)
                    .is_some_and(|next| next.is_ascii_hexdigit() || *next == ':'))
        {
            let end = word_end(&chars, at);
            let word: String = chars[at..end].iter().collect();
            out.push_str(&normal(&word, &out));
            at = end;
        } else if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
            at += 1;
        } else {
            out.push(c);
            at += 1;
        }
    }
    out.trim().to_owned()
}

/// The end of a quoted text that starts here.
fn quoted(chars: &[char], at: usize) -> Option<usize> {
    let open = chars[at];
    let close = match open {
        '"' | '\'' | '`' => open,
        '“' => '”',
        '‘' => '’',
        '«' => '»',
        _ => return None,
    };
    let behind = chars[at + 1..].iter().position(|c| *c == close)?;
    let end = at + behind + 2;
    // An apostrophe inside a word does not close anything.
    let closes = chars.get(end).is_none_or(|c| !c.is_alphanumeric());
    (behind > 0 && closes).then_some(end)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A word with what belongs to ids and addresses: `10.0.0.7:5672`, `[::1]:80`, `0190b8f2-7c1e`.
fn word_end(chars: &[char], at: usize) -> usize {
    let belongs = |c: char| is_word(c) || matches!(c, '.' | ':' | '-' | '[' | ']');
    let mut end = at;
    while end < chars.len() && belongs(chars[end]) {
        end += 1;
    }
    while end > at + 1 && !is_word(chars[end - 1]) {
        end -= 1;
    }
    end
}

fn normal(word: &str, before: &str) -> String {
    if uuid(word) {
        return "<id>".to_owned();
    }
    if is_address(word) {
        return "<address>".to_owned();
    }
    // Times are many numbers.
    word.split_inclusive([':', '-', '[', ']'])
        .map(|part| {
            let (part, end) = match part.char_indices().next_back() {
                Some((at, c)) if !is_word(c) && c != '.' => part.split_at(at),
                _ => (part, ""),
            };
            let normal = if is_hex(part) {
                "<hex>".to_owned()
            } else if is_status(part, before) {
                part.to_owned()
            } else {
                numbers(part)
            };
            normal + end
        })
        .collect()
}

fn uuid(word: &str) -> bool {
    word.len() >= 32 && sendoff::Uuid::parse_str(word).is_ok()
}

fn is_address(word: &str) -> bool {
    if word.parse::<std::net::IpAddr>().is_ok() || word.parse::<std::net::SocketAddr>().is_ok() {
        return true;
    }
    let Some((host, port)) = word.rsplit_once(':') else {
        return false;
    };
    let is_port = port.len() <= 5 && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = host.contains('.') || host == "localhost" || port.len() >= 4;
    let is_name = !host.is_empty()
        && host.bytes().any(|byte| byte.is_ascii_alphabetic())
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    is_port && is_host && is_name
}

fn is_hex(part: &str) -> bool {
    let digits = part.strip_prefix("0x").unwrap_or(part);
    let has = |test: fn(&u8) -> bool| digits.bytes().any(|byte| test(&byte));
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    all && (digits.len() < part.len() || (digits.len() >= 8 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)))
}

/// The code of an answer says what went wrong: it stays.
fn is_status(part: &str, before: &str) -> bool {
    let code = part.len() == 3 && part.parse::<u16>().is_ok_and(|code| (100..600).contains(&code));
    let last = before.trim_end_matches([' ', ':', '=', '(']);
    let last = last.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let names = ["answered", "code", "error", "http", "status"];
    code && names.iter().any(|name| last.eq_ignore_ascii_case(name))
}

/// The text with a placeholder for each number, with its fraction.
fn numbers(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if !c.is_ascii_digit() {
            out.push(c);
            continue;
        }
        while chars.next_if(|c| c.is_ascii_digit() || *c == '.').is_some() {}
        out.push_str("<n>");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_becomes_a_placeholder() {
        for (error, expected) in [
            ("timed out after 30s", "timed out after <n>s"),
            ("timed out after 1.5 s", "timed out after <n> s"),
            (
                "connect to rabbit.internal:5672: refused",
                "connect to <address>: refused",
            ),
            (
                "connect to localhost:80 and 10.1.2.3",
                "connect to <address> and <address>",
            ),
            ("no answer from [::1]:9092", "no answer from <address>"),
            (
                "message 0190b8f2-7c1e-7d3a-9f65-8a1d3c2b4e5f is gone",
                "message <id> is gone",
            ),
            ("commit 9f3a2bc4d1 of 0xdead", "commit <hex> of <hex>"),
            (
                "queue 'orders-7' is \"full\" at `x`",
                "queue <text> is <text> at <text>",
            ),
            ("the sink's limit isn't known", "the sink's limit isn't known"),
            (
                "http://shop answered 503 Service Unavailable",
                "http://shop answered 503 Service Unavailable",
            ),
            ("error: 404", "error: 404"),
            ("at 2026-01-31T12:00:00.5Z", "at <n>-<n>-<n>T<n>:<n>:<n>Z"),
            ("task t-81 failed  (3\n of 5)", "task t-<n> failed (<n> of <n>)"),
            ("", ""),
        ] {
            assert_eq!(error_fingerprint(error), expected, "{error}");
        }
    }

    #[test]
    fn it_is_stable_and_bounded() {
        let once = error_fingerprint("connect to a.b:1 after 7 tries: 'x'");
        assert_eq!(error_fingerprint("connect to c.d:22 after 123 tries: 'yy'"), once);
        assert!(error_fingerprint(&"word ".repeat(10_000)).len() <= LONGEST + 50);
        for odd in ["'", "\"\"", "[", "[]", ":", "é'ü", "𝟘 １２"] {
            let _ = error_fingerprint(odd);
        }
    }
}
