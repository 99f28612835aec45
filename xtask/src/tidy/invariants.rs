//! Every invariant in the architecture note names a test that exists.

use super::tree::Tree;

const NOTE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Invariants";

/// Finds invariants without a test and tests that nobody wrote.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let Some(note) = tree.file(NOTE) else {
        return vec![format!("{NOTE}: is missing: it holds the map and the invariants")];
    };
    let invariants = invariants(&note.text);
    if invariants.is_empty() {
        return vec![format!("{NOTE}: has no numbered list under `{HEADING}`")];
    }
    let mut violations = Vec::new();
    for (number, text) in invariants {
        let names = tests_named_in(&text);
        if names.is_empty() {
            violations.push(format!(
                "{NOTE}: invariant {number} names no test: end it with — test `path::name`"
            ));
        }
        for name in names.iter().filter(|name| !exists(tree, name)) {
            violations.push(format!(
                "{NOTE}: invariant {number} names the test `{name}`, which does not exist"
            ));
        }
    }
    violations
}

/// The numbered items of the section, each with its continuation lines.
fn invariants(note: &str) -> Vec<(u32, String)> {
    let mut items: Vec<(u32, String)> = Vec::new();
    let section = note.lines().skip_while(|line| line.trim_end() != HEADING).skip(1);
    for line in section.take_while(|line| !line.starts_with("## ")) {
        let numbered = line
            .split_once(". ")
            .and_then(|(number, text)| Some((number.parse().ok()?, text)));
        match (numbered, items.last_mut()) {
            (Some((number, text)), _) => items.push((number, text.to_owned())),
            (None, Some((_, text))) => {
                text.push(' ');
                text.push_str(line.trim());
            }
            (None, None) => {}
        }
    }
    items
}

/// The backticked names that follow the word `test` or `tests`, as in: tests `one`, `two` and `three`.
fn tests_named_in(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    // Odd pieces are what stands between backticks.
    let pieces: Vec<&str> = text.split('`').collect();
    let mut in_list = false;
    for pair in pieces.chunks(2) {
        let [between, name] = pair else { break };
        let last_word = between
            .trim()
            .trim_end_matches(':')
            .rsplit(|c: char| !c.is_alphanumeric())
            .next();
        let continues = matches!(between.trim(), "," | "and" | ", and" | "or" | ";");
        in_list = matches!(last_word, Some("test" | "tests" | "Test" | "Tests")) || (in_list && continues);
        if in_list {
            names.push(*name);
        }
    }
    names
}

/// Whether some Rust file has a function of that name, or a case that is registered under it.
fn exists(tree: &Tree, name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    let function = format!("fn {last}");
    let is_defined = |text: &str| {
        text.match_indices(&function).any(|(at, _)| {
            let next = text[at + function.len()..].chars().next();
            next.is_some_and(|letter| !letter.is_alphanumeric() && letter != '_')
        })
    };
    let quoted = [format!("\"{last}\""), format!("\"{name}\"")];
    tree.rust()
        .any(|file| is_defined(&file.text) || quoted.iter().any(|case| file.text.contains(case)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_note(list: &str) -> Vec<String> {
        let note = format!("# Map\n\n1. Not one.\n\n## Invariants\n\n{list}\n\n## More\n\n2. Not one either.\n");
        let source = "fn stale_claim_cannot_settle() {}\nfn order_is_kept_per_key() {}\n(\"case_by_name\", run)\n";
        check(&Tree::of(&[(NOTE, &note), ("a/tests/all.rs", source)]))
    }

    #[test]
    fn missing_note_is_found() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }

    #[test]
    fn note_without_invariants_is_found() {
        assert_eq!(check(&Tree::of(&[(NOTE, "# Map\n")])).len(), 1);
    }

    #[test]
    fn invariant_without_a_test_is_found() {
        let found = check_note("1. The `relay` knows no SQL.");
        assert!(
            found.len() == 1 && found[0].contains("invariant 1 names no test"),
            "{found:?}"
        );
    }

    #[test]
    fn test_that_nobody_wrote_is_found() {
        let found = check_note("1. A stale claim cannot settle — test `claims::stale_claim`");
        assert!(
            found.len() == 1 && found[0].contains("`claims::stale_claim`"),
            "{found:?}"
        );
    }

    #[test]
    fn invariants_with_real_tests_are_fine() {
        let found = check_note(
            "1. A `claim` that is stale cannot settle\n   — tests `claims::stale_claim_cannot_settle`,\n   \
             `case_by_name` and `order_is_kept_per_key`.\n2. Order — test: `order_is_kept_per_key`",
        );
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn only_names_after_the_word_test_count() {
        assert_eq!(
            tests_named_in("the `relay` — tests `a::b`, `c` in `file.rs`"),
            ["a::b", "c"]
        );
    }
}
