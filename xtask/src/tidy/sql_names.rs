//! A verb has one file name in every dialect, so that dialects can be read side by side.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::Tree;

/// Folders that need not match, and why.
const EXEMPT: &[(&str, &str)] = &[(
    "stores/django-celery/sql",
    "reads a table that another product owns, so it has fewer verbs",
)];

/// Files that a folder need not have, and why.
const ABSENT: &[(&str, &str, &str)] = &[
    (
        "stores/postgres/sql",
        "audit.sql",
        "the functions that operators call write it, so that nobody else can",
    ),
    ("stores/postgres/sql", "audit_add.sql", "so do they add to it"),
];

/// The places where dialects lie next to each other: how a path there begins, how deep the folder of one dialect is,
/// and what that folder's path ends with.
const PLACES: &[(&str, usize, &str)] = &[("stores/", 3, "/sql"), ("crates/sendoff-core/sql/", 4, "")];

type Folders<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Finds dialects that lack a file which another dialect has.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    PLACES
        .iter()
        .flat_map(|(start, depth, end)| compare(&dialects(tree, start, *depth, end)))
        .collect()
}

fn dialects<'a>(tree: &'a Tree, start: &str, depth: usize, end: &str) -> Folders<'a> {
    let mut folders = Folders::new();
    for file in tree.files().filter(|file| file.path.starts_with(start)) {
        let Some((slash, _)) = file.path.match_indices('/').nth(depth - 1) else {
            continue;
        };
        let (folder, name) = (&file.path[..slash], &file.path[slash + 1..]);
        if folder.ends_with(end) && !EXEMPT.iter().any(|(exempt, _)| *exempt == folder) {
            folders.entry(folder).or_default().insert(name);
        }
    }
    folders
}

fn compare(folders: &Folders<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    for (folder, names) in folders {
        for (other, other_names) in folders {
            let is_absent = |name: &str| ABSENT.iter().any(|absent| (absent.0, absent.1) == (*folder, name));
            for missing in other_names.difference(names).filter(|name| !is_absent(name)) {
                violations.push(format!("{folder}: lacks {missing}, which {other} has"));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialect_without_a_verb_is_found() {
        let tree = Tree::of(&[
            ("stores/postgres/sql/claim.sql", ""),
            ("stores/postgres/sql/settle.sql", ""),
            ("stores/sqlite/sql/claim.sql", ""),
        ]);
        assert_eq!(
            check(&tree),
            ["stores/sqlite/sql: lacks settle.sql, which stores/postgres/sql has"]
        );
    }

    #[test]
    fn dialects_of_the_core_are_compared_too() {
        let tree = Tree::of(&[
            ("crates/sendoff-core/sql/postgres/emit.sql", ""),
            ("crates/sendoff-core/sql/sqlite/put.sql", ""),
        ]);
        assert_eq!(check(&tree).len(), 2);
    }

    #[test]
    fn equal_dialects_and_exempt_folders_are_fine() {
        let tree = Tree::of(&[
            ("stores/postgres/sql/claim.sql", ""),
            ("stores/postgres/migrations/0001_outbox.sql", ""),
            ("stores/sqlite/sql/claim.sql", ""),
            ("stores/sqlite/sql/audit.sql", ""),
            ("stores/django-celery/sql/peek.sql", ""),
        ]);
        assert!(check(&tree).is_empty());
    }
}
