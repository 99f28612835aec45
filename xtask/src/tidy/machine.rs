//! Nothing in the tree names the machine that somebody worked on.

use super::tree::Tree;

/// Each is written in two pieces, so that this file does not find itself.
const PATTERNS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/fa", "rm/"),
    concat!("../sh", "ared"),
    concat!("artif", "actory"),
];

/// Finds paths and hosts that exist on one machine only.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    // Cargo writes the lock file, with its own hosts.
    for file in tree.files().filter(|file| file.path != "Cargo.lock") {
        for (line, number) in file.text.lines().zip(1..) {
            for pattern in PATTERNS.iter().filter(|pattern| line.contains(*pattern)) {
                violations.push(format!(
                    "{}:{number}: `{pattern}` is not on the reader's machine",
                    file.path
                ));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_one_machine_is_found_with_its_line() {
        let text = format!("first\nsee {}notes\n", PATTERNS[0]);
        let found = check(&Tree::of(&[("docs/a.md", &text)]));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("docs/a.md:2:"), "{found:?}");
    }

    #[test]
    fn lock_file_and_other_paths_are_fine() {
        let tree = Tree::of(&[("Cargo.lock", PATTERNS[4]), ("docs/a.md", "/usr/lib and network/io")]);
        assert!(check(&tree).is_empty());
    }
}
