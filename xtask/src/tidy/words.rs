//! Words that the glossary gave up stay out of code, SQL, help and docs.

use super::tree::{File, Tree};

/// Parts of identifiers, and words of texts. Each is written in two pieces, so that this file does not find itself.
const GIVEN_UP: &[(&str, &str)] = &[
    (concat!("l", "eg"), "delivery, or sink where it is the name of one"),
    (concat!("l", "egs"), "deliveries"),
    (concat!("de", "sk"), "dispatcher"),
    (concat!("has", "ten"), "retry"),
    (concat!("has", "tened"), "retried"),
    (concat!("en", "list"), "register"),
    (concat!("en", "listed"), "registered"),
    (concat!("re", "tire"), "deregister"),
    (concat!("re", "tired"), "deregistered"),
    (concat!("ab", "solve"), "clear"),
    (concat!("ab", "solved"), "cleared"),
    (concat!("sus", "pect"), "quarantine"),
    (concat!("sus", "pects"), "quarantine"),
    (concat!("vi", "tals"), "health"),
    (concat!("pu", "lse"), "health"),
    (concat!("ru", "ng"), "wake source"),
    (concat!("po", "ke"), "wake"),
    (concat!("po", "ked"), "woken"),
    (concat!("le", "nt"), "pooled connection"),
];

/// Phrases, in lower case.
const PHRASES: &[(&str, &str)] = &[
    (concat!("in ", "hand"), "in flight, or queued"),
    (concat!("work ", "item"), "job"),
    (concat!("outbox_", "item"), "outbox_job"),
    (concat!("window_", "bytes"), "max_in_flight_bytes"),
    (concat!("head ", "policy"), "on_failure"),
    (concat!("slip of ", "the pen"), "a plain sentence"),
    (concat!("tell ", "the makers"), "please report this as a bug"),
    (concat!("all ", "the same"), "still, or anyway"),
];

/// Pages that tell what was given up, or that quote it.
const EXEMPT: &[&str] = &["CHANGELOG.md", "docs/glossary.md", "docs/decisions/"];

/// Finds words that were given up.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for file in tree.files().filter(|file| is_ruled(file)) {
        for (line, number) in file.text.lines().zip(1..) {
            for (given_up, instead) in given_up_in(line) {
                violations.push(format!(
                    "{}:{number}: {given_up:?} was given up: use {instead} (docs/glossary.md)",
                    file.path
                ));
            }
        }
    }
    violations
}

fn is_ruled(file: &File) -> bool {
    let is_text = [".rs", ".sql", ".md", ".toml", ".yaml", ".py"]
        .iter()
        .any(|end| file.path.ends_with(end));
    is_text && !EXEMPT.iter().any(|exempt| file.path.starts_with(exempt))
}

fn given_up_in(line: &str) -> Vec<(&'static str, &'static str)> {
    let lower = line.to_lowercase();
    let phrases = PHRASES.iter().filter(|(phrase, _)| lower.contains(phrase)).copied();
    let parts = parts(line);
    let words = GIVEN_UP
        .iter()
        .filter(|(word, _)| parts.iter().any(|part| part == word));
    phrases.chain(words.copied()).collect()
}

/// The words of a line, and those that identifiers are made of, in lower case.
fn parts(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for letter in line.chars() {
        let begins = !letter.is_alphabetic() || letter.is_uppercase() && !before.is_uppercase();
        if begins {
            parts.push(String::new());
        }
        if let (true, Some(part)) = (letter.is_alphabetic(), parts.last_mut()) {
            part.extend(letter.to_lowercase());
        }
        before = letter;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> usize {
        check(&Tree::of(&[("crates/a/src/lib.rs", line)])).len()
    }

    #[test]
    fn every_word_that_was_given_up_is_found() {
        for (word, _) in GIVEN_UP {
            assert_eq!(found(&format!("let {word} = 1;")), 1, "{word}");
            assert_eq!(found(&format!("fn has_{word}_left()")), 1, "{word}");
        }
        for (phrase, _) in PHRASES {
            assert!(found(&format!("// It is {phrase} here.")) > 0, "{phrase}");
        }
        assert_eq!(found(concat!("struct Sink", "De", "sk;")), 1);
    }

    #[test]
    fn words_that_only_contain_one_are_fine() {
        assert_eq!(found("let legend = desktop_silently; // talent, elegant, trunk"), 0);
    }

    #[test]
    fn the_glossary_and_the_past_may_name_them() {
        let line = concat!("| delivery | l", "eg |\n");
        assert!(
            check(&Tree::of(&[
                ("docs/glossary.md", line),
                ("docs/decisions/0001-a.md", line)
            ]))
            .is_empty()
        );
    }
}
