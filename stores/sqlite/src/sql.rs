//! The texts of `sql/`, with the configured names in them.

use sendoff::emit::Names;

/// Conditions that several statements share; a line `{filter}` or `{to_hasten}` stands for one.
const FILTER: &str = include_str!("../sql/filter.sql");
const TO_HASTEN: &str = include_str!("../sql/to_hasten.sql");

fn with_conditions(text: &str) -> String {
    text.replace("{to_hasten}\n", TO_HASTEN).replace("{filter}\n", FILTER)
}

/// The statements of one file, in order.
#[derive(Debug)]
pub(crate) struct Text(Vec<String>);

impl Text {
    /// The first, or only, one.
    pub(crate) fn first(&self) -> &str {
        self.at(0)
    }

    /// One of several, counted from 0.
    pub(crate) fn at(&self, index: usize) -> &str {
        self.0.get(index).map_or("", String::as_str)
    }
}

macro_rules! texts {
    ($($verb:ident),+ $(,)?) => {
        /// Every file, under its name.
        #[derive(Debug)]
        pub(crate) struct Sql {
            $(pub(crate) $verb: Text,)+
        }

        impl Sql {
            pub(crate) fn new(names: &Names) -> Self {
                Self {
                    $($verb: {
                        let text = include_str!(concat!("../sql/", stringify!($verb), ".sql"));
                        split(&names.render(&with_conditions(text)))
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

texts!(
    absolve,
    acquire,
    audit,
    audit_add,
    audits,
    backlog,
    blocked_keys,
    check_lanes,
    claim_items,
    clean_count,
    clean_dead,
    clean_dedup,
    clean_delivered,
    clean_inbox,
    clean_items,
    clean_needed,
    complete_items,
    count,
    count_items,
    die_ready,
    die_waiting,
    discard_dead,
    discard_failed,
    enlist,
    evict,
    extend_items,
    fail_item,
    find,
    follow_on,
    hasten,
    hasten_count,
    heartbeat,
    history,
    hold_back,
    keep_items,
    key_left,
    keys,
    lane_heads,
    lane_views,
    ledger_create,
    ledger_read,
    list,
    list_items,
    now,
    pause,
    paused,
    pauses,
    read_due,
    read_ready,
    reap_items,
    relays,
    release,
    release_items,
    release_key,
    release_orphans,
    remove_ready,
    remove_waiting,
    resume,
    retire,
    retry_dead,
    retry_failed,
    retry_item,
    setting,
    settle_delivered,
    settle_done,
    settle_done_kept,
    settle_kept,
    split_waiting,
    summary,
    suspect,
    vitals,
    wait_again,
    wait_ready,
    write_setting,
);

/// A statement ends with a semicolon at the end of its line; no text of ours has one elsewhere at the end of a line.
fn split(sql: &str) -> Text {
    let statements = sql.split(";\n").map(str::trim).filter(|text| !text.is_empty());
    Text(statements.map(str::to_owned).collect())
}

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
                include_str!("../migrations/0002_items.sql"),
            ] {
                connection.execute_batch(&names.render(step)).unwrap();
            }
            connection.execute_batch(sql.ledger_create.first()).unwrap();
            for (verb, text) in sql.all() {
                assert!(!text.0.is_empty(), "{verb}");
                for statement in &text.0 {
                    connection
                        .prepare(&statement.replace("{state}", "true"))
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
        files.retain(|file| file != "filter" && file != "to_hasten");
        files.sort();
        let sql = Sql::new(&Names::default());
        assert_eq!(
            files,
            sql.all().iter().map(|(verb, _)| (*verb).to_owned()).collect::<Vec<_>>()
        );
    }
}
