//! Patterns of task names, as in Python's `fnmatch`.

/// Whether `name` matches: `*` is any text, `?` one character, `[abc]`, `[a-z]` and `[!a]` one of some characters.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Where to continue after a mismatch: behind the last star, one character further in the name.
    let mut retry: Option<(usize, usize)> = None;
    let (mut at, mut here) = (0, 0);
    loop {
        if pattern.get(at) == Some(&'*') {
            at += 1;
            retry = Some((at, here));
            continue;
        }
        if at == pattern.len() && here == name.len() {
            return true;
        }
        if let Some(next) = name.get(here).and_then(|character| one(&pattern, at, *character)) {
            at = next;
            here += 1;
            continue;
        }
        match retry {
            Some((star, start)) if start < name.len() => {
                retry = Some((star, start + 1));
                (at, here) = (star, start + 1);
            }
            _ => return false,
        }
    }
}

/// Matches one character. Returns the next position in the pattern.
fn one(pattern: &[char], at: usize, character: char) -> Option<usize> {
    let first = *pattern.get(at)?;
    if first == '[' {
        // An unclosed bracket is literal; a bracket right after the opening one is part of the set.
        let start = at + 1 + usize::from(pattern.get(at + 1) == Some(&'!'));
        let closing = (start + 1..pattern.len()).find(|end| pattern[*end] == ']');
        if let Some(end) = closing {
            let is_in = set(&pattern[start..end], character);
            let wanted = start == at + 1;
            return (is_in == wanted).then_some(end + 1);
        }
    }
    (first == '?' || first == character).then_some(at + 1)
}

fn set(set: &[char], character: char) -> bool {
    let mut at = 0;
    while at < set.len() {
        if set.get(at + 1) == Some(&'-') && at + 2 < set.len() {
            if (set[at]..=set[at + 2]).contains(&character) {
                return true;
            }
            at += 3;
        } else {
            if set[at] == character {
                return true;
            }
            at += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_fnmatch() {
        for (pattern, name, expected) in [
            ("demo.*", "demo.add", true),
            ("demo.*", "demo.", true),
            ("demo.*", "demo", false),
            ("*", "", true),
            ("*.add", "a.b.add", true),
            ("*.add", "a.b.adds", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("de?o.*", "demo.x", true),
            ("de?o.*", "deo.x", false),
            ("[dx]emo.*", "xemo.1", true),
            ("[!d]emo.*", "demo.1", false),
            ("[!d]emo.*", "xemo.1", true),
            ("t[0-9]*", "t5x", true),
            ("t[0-9]*", "tx", false),
            ("t[]]*", "t]", true),
            ("t[*", "t[x", true),
            ("{a,b}*", "a", false),
            ("{a,b}*", "{a,b}c", true),
            ("DEMO.*", "demo.x", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
