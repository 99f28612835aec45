//! No source file is longer than one can keep in mind.

use super::tree::Tree;

const MOST_LINES: usize = 500;

/// Files that may be longer, and why.
const EXEMPT: &[(&str, &str)] = &[];

/// Finds Rust files that are too long, with their tests.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let counted = tree
        .rust()
        .filter(|file| !EXEMPT.iter().any(|(path, _)| *path == file.path));
    counted
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(file, lines)| {
            format!(
                "{}: {lines} lines, at most {MOST_LINES}: split it by what it does",
                file.path
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_file_is_found() {
        assert_eq!(check(&Tree::of(&[("a/src/lib.rs", &"\n".repeat(501))])).len(), 1);
    }

    #[test]
    fn long_tests_are_found() {
        let inline = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(600));
        let tree = Tree::of(&[("a/src/lib.rs", &inline), ("a/tests/all.rs", &"\n".repeat(501))]);
        assert_eq!(check(&tree).len(), 2);
        assert!(check(&Tree::of(&[("a/tests/all.rs", &"\n".repeat(500))])).is_empty());
    }
}
