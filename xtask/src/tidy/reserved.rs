//! No name in the SQL for MySQL is a word that MySQL reserves: MariaDB, which the tests run on, reserves fewer.

use std::collections::BTreeSet;

use super::tree::{File, Tree};

/// What MySQL 8.0, 8.4 or 9 reserves, one word a line, as `information_schema.keywords` tells it.
const WORDS: &str = include_str!("mysql_reserved.txt");

/// Keywords are written in capitals and names in small letters, but for these.
const SMALL_KEYWORDS: &[&str] = &["true", "false"];

const FOLDERS: &[&str] = &[
    "stores/mysql/migrations/",
    "stores/mysql/sql/",
    "crates/sendoff-core/sql/mysql/",
];

/// Finds reserved words in small letters that are not quoted.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let reserved: BTreeSet<&str> = WORDS.lines().filter(|word| !SMALL_KEYWORDS.contains(word)).collect();
    let ruled = |file: &&File| FOLDERS.iter().any(|folder| file.path.starts_with(folder));
    let mut violations = Vec::new();
    for file in tree.files().filter(ruled) {
        for (line, number) in file.text.lines().zip(1..) {
            for name in names(line).filter(|name| reserved.contains(name)) {
                violations.push(format!(
                    "{}:{number}: `{name}` is a reserved word of MySQL: choose another name, or put it in backticks",
                    file.path
                ));
            }
        }
    }
    violations
}

/// The words of a line that the server reads as names or keywords: not those of comments, texts, quoted names,
/// parameters (`:name`) and places that are filled in (`{name}`). No text of ours goes over a line's end.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            if rest.starts_with("--") {
                return None;
            }
            let ends = match first {
                '\'' | '`' => Some(first),
                '{' => Some('}'),
                _ => None,
            };
            if let Some(end) = ends {
                rest = rest[1..].split_once(end).map_or("", |(_, behind)| behind);
                continue;
            }
            let is_parameter = first == ':';
            if is_parameter || !is_of_word(first) {
                rest = &rest[first.len_utf8()..];
            }
            let (word, behind) = rest.split_at(rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()));
            rest = behind;
            if !is_parameter && !word.is_empty() {
                return Some(word);
            }
        }
    })
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sql: &str) -> usize {
        check(&Tree::of(&[("stores/mysql/migrations/0001_outbox.sql", sql)])).len()
    }

    #[test]
    fn reserved_names_are_found() {
        for sql in [
            "    stored BOOLEAN NOT NULL,",
            "UPDATE outbox_dedup SET stored = true",
            "SELECT max(stored), a.rank FROM t AS groups",
            "(key, 'x')",
        ] {
            assert!(found(sql) > 0, "{sql}");
        }
        assert_eq!(found("SELECT max(stored), a.rank FROM t AS groups"), 3);
    }

    #[test]
    fn keywords_quoted_names_texts_parameters_and_comments_are_fine() {
        for sql in [
            "SELECT `key`, 'stored' FROM t WHERE NOT is_stored AND blocks = false -- stored",
            "LIMIT :limit OFFSET {limit}",
            "VALUES (:key, CAST(:key AS BINARY))",
            "-- what is stored, and the rank of groups",
        ] {
            assert_eq!(found(sql), 0, "{sql}");
        }
        let elsewhere = Tree::of(&[("stores/postgres/migrations/0001_outbox.sql", "stored boolean")]);
        assert!(check(&elsewhere).is_empty());
    }
}
