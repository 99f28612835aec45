//! Nothing half-done is left behind: no placeholder, no ignored test, no debug print.

use super::tree::Tree;

/// Each is written in two pieces, so that this file does not find itself.
const PATTERNS: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ig", "nore"),
    concat!("FIX", "ME"),
    concat!("db", "g!("),
];

/// Finds what somebody meant to come back to.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for file in tree.rust() {
        for (line, number) in file.text.lines().zip(1..) {
            for pattern in PATTERNS.iter().filter(|pattern| line.contains(*pattern)) {
                violations.push(format!("{}:{number}: `{pattern}`: finish it or take it out", file.path));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_leftover_is_found() {
        for pattern in PATTERNS {
            assert_eq!(check(&Tree::of(&[("a/src/lib.rs", pattern)])).len(), 1, "{pattern}");
        }
    }

    #[test]
    fn finished_code_is_fine() {
        assert!(check(&Tree::of(&[("a/src/lib.rs", "fn done() {}\n")])).is_empty());
    }
}
