//! Every crate inherits the workspace's lints and says on its first page that it has no unsafe code.

use super::tree::Tree;

/// Finds crates that could hold unsafe code.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for manifest in tree.files() {
        let Some(folder) = manifest.path.strip_suffix("Cargo.toml") else {
            continue;
        };
        if !has_line(&manifest.text, "[package]") {
            continue;
        }
        if !inherits_lints(&manifest.text) {
            violations.push(format!("{}: add `[lints]` with `workspace = true`", manifest.path));
        }
        for root in ["src/lib.rs", "src/main.rs"] {
            let file = tree.file(&format!("{folder}{root}"));
            if let Some(file) = file.filter(|file| !has_line(&file.text, "#![forbid(unsafe_code)]")) {
                violations.push(format!("{}: add `#![forbid(unsafe_code)]` at the top", file.path));
            }
        }
    }
    violations
}

fn has_line(text: &str, wanted: &str) -> bool {
    text.lines().any(|line| line.trim() == wanted)
}

fn inherits_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim);
    lines.any(|line| line == "[lints]")
        && lines
            .take_while(|line| !line.starts_with('['))
            .any(|line| line.replace(' ', "") == "workspace=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";

    #[test]
    fn crate_root_without_the_attribute_is_found() {
        let found = check(&Tree::of(&[("a/Cargo.toml", MANIFEST), ("a/src/lib.rs", "//! A.\n")]));
        assert_eq!(found, ["a/src/lib.rs: add `#![forbid(unsafe_code)]` at the top"]);
    }

    #[test]
    fn crate_with_its_own_lints_is_found() {
        let manifest = "[package]\nversion.workspace = true\n[lints]\n[dependencies]\nworkspace = true\n";
        assert_eq!(check(&Tree::of(&[("a/Cargo.toml", manifest)])).len(), 1);
    }

    #[test]
    fn safe_crate_and_workspace_manifest_are_fine() {
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace]\n"),
            ("a/Cargo.toml", MANIFEST),
            ("a/src/main.rs", "//! A.\n#![forbid(unsafe_code)]\n"),
        ]);
        assert!(check(&tree).is_empty());
    }
}
