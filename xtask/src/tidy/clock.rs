//! Time that decides is the database's: the relay and the stores do not read this machine's clock.

use super::tree::{File, Tree};

/// Each is written in two pieces, so that this file does not find itself.
const ALWAYS: &[&str] = &[
    concat!("SystemTime", "::now"),
    concat!("Timestamp", "::now"),
    concat!("Zoned", "::now"),
];

/// Tokio's is allowed, because a test can pause it; the standard library's is not.
const UNLESS_TOKIO: &str = concat!("Instant", "::now");

/// Finds readings of the local clock where the database's must be used.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    tree.rust().filter(|file| is_ruled(file)).flat_map(check_file).collect()
}

fn is_ruled(file: &File) -> bool {
    let mut folders = file.path.split('/');
    let place = (folders.next(), folders.next(), folders.next());
    matches!(
        place,
        (Some("stores"), _, Some("src")) | (Some("crates"), Some("sendoff-relay"), Some("src"))
    ) && !file.is_test()
}

fn check_file(file: &File) -> Vec<String> {
    let lines = file.lines_outside_tests();
    let code = || lines.iter().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let imports_std = code().any(|(_, line)| {
        let line = line.trim();
        line == "use std::time;" || (line.starts_with("use std::time::") && line.contains("Instant"))
    });
    let reads_clock = |line: &str| {
        let local = line.contains(UNLESS_TOKIO)
            && !line.contains(&format!("tokio::time::{UNLESS_TOKIO}"))
            && (imports_std || line.contains(&format!("std::time::{UNLESS_TOKIO}")));
        local || ALWAYS.iter().any(|pattern| line.contains(pattern))
    };
    code()
        .filter(|(_, line)| reads_clock(line))
        .map(|(number, line)| {
            format!(
                "{}:{number}: `{}` reads this machine's clock: ask the database, or use tokio::time to measure",
                file.path,
                line.trim()
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_in_a_store_is_found() {
        let text = format!("fn claim() {{\n    let now = {}();\n}}\n", ALWAYS[1]);
        let found = check(&Tree::of(&[("stores/sqlite/src/claim.rs", &text)]));
        assert!(
            found.len() == 1 && found[0].starts_with("stores/sqlite/src/claim.rs:2:"),
            "{found:?}"
        );
    }

    #[test]
    fn imported_standard_instant_in_the_relay_is_found() {
        let text = format!("use std::time::{{Duration, Instant}};\nfn run() {{ {UNLESS_TOKIO}(); }}\n");
        assert_eq!(check(&Tree::of(&[("crates/sendoff-relay/src/run.rs", &text)])).len(), 1);
    }

    #[test]
    fn tokio_instant_comments_tests_and_other_crates_are_fine() {
        let tokio = format!("use std::time::Duration;\nuse tokio::time::Instant;\nfn run() {{ {UNLESS_TOKIO}(); }}\n");
        let comment = format!("// never {}\n", ALWAYS[0]);
        let tested = format!("#[cfg(test)]\nmod tests {{\n    {}();\n}}\n", ALWAYS[0]);
        let tree = Tree::of(&[
            ("crates/sendoff-relay/src/run.rs", &tokio),
            ("stores/sqlite/src/claim.rs", &comment),
            ("stores/sqlite/src/settle.rs", &tested),
            ("bin/sendoff/src/main.rs", ALWAYS[0]),
        ]);
        assert_eq!(check(&tree), Vec::<String>::new());
    }
}
