//! The SQL texts in `sql/`, with the configured table names inserted.

use sendoff::columns::expand;
use sendoff::emit::{Dialect, Names};
use sendoff::store::Text;

/// Conditions that several statements share; a line `{filter}`, `{of_dead}` or `{to_retry}` stands for one.
const FILTER: &str = include_str!("../sql/filter.sql");
const TO_RETRY: &str = include_str!("../sql/to_retry.sql");
const OF_DEAD: &str = include_str!("../sql/of_dead.sql");

/// That a relay's lease counts: it has not run out, and does not end further ahead than it is long, which is what is left
/// when the server's clock was set back.
const LEASE_IS_VALID: &str = "(until > UTC_TIMESTAMP(6) \
    AND until <= UTC_TIMESTAMP(6) + INTERVAL (lease + lease DIV 5) MICROSECOND)";

/// With those conditions, and with the columns of a message.
pub(crate) fn whole(text: &str) -> String {
    let text = text
        .replace("{to_retry}\n", TO_RETRY)
        .replace("{of_dead}\n", OF_DEAD)
        .replace("{filter}\n", FILTER)
        .replace("{lease_is_valid}", LEASE_IS_VALID);
    expand(Dialect::Mysql, &text)
}

macro_rules! texts {
    ($($verb:ident),+ $(,)?) => {
        /// Every file, under its name.
        #[derive(Debug)]
        pub(crate) struct Texts {
            $(pub(crate) $verb: Text,)+
        }

        impl Texts {
            pub(crate) fn new(names: &Names) -> Self {
                Self {
                    $($verb: {
                        let text = include_str!(concat!("../sql/", stringify!($verb), ".sql"));
                        Text::split(&names.render(&whole(text)))
                    },)+
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
        let texts = Texts::new(&Names::default());
        let mut verbs: Vec<_> = texts.all().iter().map(|(verb, _)| (*verb).to_owned()).collect();
        verbs.sort();
        assert_eq!(files, verbs);
    }

    #[test]
    fn texts_are_split_into_statements_without_their_comments() {
        let texts = Texts::new(&Names::default());
        for (verb, text) in texts.all() {
            assert!(!text.statements().is_empty(), "{verb}");
            assert!(
                text.statements()
                    .iter()
                    .all(|sql| !sql.contains("--") && !sql.contains(';')),
                "{verb}"
            );
        }
        assert_eq!(
            (
                texts.acquire.statements().len(),
                texts.wait_again.statements().len(),
                texts.find.statements().len()
            ),
            (4, 3, 1)
        );
    }
}
