//! The SQL texts in `sql/`, with the configured table names inserted.

use sendoff::columns::expand;
use sendoff::emit::{Dialect, Names};
use sendoff::store::{ListTexts, Text};

use crate::operate::list_texts;

/// Conditions that several statements share; a line `{filter}`, `{of_dead}` or `{to_retry}` stands for one.
const FILTER: &str = include_str!("../sql/filter.sql");
const TO_RETRY: &str = include_str!("../sql/to_retry.sql");
const OF_DEAD: &str = include_str!("../sql/of_dead.sql");

/// With those conditions, and with the columns of a message.
pub(crate) fn whole(text: &str) -> String {
    let text = text
        .replace("{to_retry}\n", TO_RETRY)
        .replace("{of_dead}\n", OF_DEAD)
        .replace("{filter}\n", FILTER);
    expand(Dialect::Sqlite, &text)
}

macro_rules! texts {
    ($($verb:ident),+ $(,)?) => {
        /// Every file, under its name.
        #[derive(Debug)]
        pub(crate) struct Sql {
            $(pub(crate) $verb: Text,)+
            /// Of `list.sql` and its parts, for each table and direction.
            pub(crate) lists: [[ListTexts; 2]; 4],
        }

        impl Sql {
            pub(crate) fn new(names: &Names) -> Self {
                Self {
                    $($verb: {
                        let text = include_str!(concat!("../sql/", stringify!($verb), ".sql"));
                        Text::split(&names.render(&whole(text)))
                    },)+
                    lists: list_texts(names),
                }
            }

            #[cfg(test)]
            fn all(&self) -> Vec<(&'static str, &Text)> {
                vec![$((stringify!($verb), &self.$verb),)+]
            }
        }
    };
}

sendoff::for_each_verb!(texts, audit, audit_add);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_fits_the_tables_of_any_name() {
        for names in [Names::default(), Names::new(None, "shop_").unwrap()] {
            let connection = rusqlite::Connection::open_in_memory().unwrap();
            let sql = Sql::new(&names);
            for step in [
                include_str!("../migrations/0001_outbox.sql"),
                include_str!("../migrations/0001_jobs.sql"),
            ] {
                connection.execute_batch(&names.render(step)).unwrap();
            }
            connection.execute_batch(sql.ledger_create.first()).unwrap();
            for text in sql.lists.iter().flatten().flat_map(ListTexts::statements) {
                connection
                    .prepare(text)
                    .unwrap_or_else(|error| panic!("{text}: {error}"));
            }
            for (verb, text) in sql.all() {
                assert!(!text.statements().is_empty(), "{verb}");
                for statement in text.statements() {
                    connection
                        .prepare(&sendoff::store::with_sizes(&statement.replace("{state}", "true"), 1, 1))
                        .unwrap_or_else(|error| panic!("{verb}: {error}"));
                }
            }
        }
    }

    #[test]
    fn every_file_is_used() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
        let files = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut files: Vec<String> = files
            .map(|name| name.into_string().unwrap().replace(".sql", ""))
            .collect();
        // Parts of others.
        files.retain(|file| !["filter", "list", "list_next", "listed", "of_dead", "to_retry"].contains(&file.as_str()));
        files.sort();
        let sql = Sql::new(&Names::default());
        let mut verbs: Vec<_> = sql.all().iter().map(|(verb, _)| (*verb).to_owned()).collect();
        verbs.sort();
        assert_eq!(files, verbs);
    }
}
