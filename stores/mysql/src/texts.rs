//! The texts of `sql/`, with the configured names in them.

use sendoff::emit::Names;

/// Conditions that several statements share; a line `{filter}` or `{to_hasten}` stands for one.
const FILTER: &str = include_str!("../sql/filter.sql");
const TO_HASTEN: &str = include_str!("../sql/to_hasten.sql");

/// That a relay's lease counts: it has not run out, and does not end further ahead than it is long, which is what is left
/// when the server's clock was set back.
const LEASE_IS_VALID: &str = "(until > UTC_TIMESTAMP(6) \
    AND until <= UTC_TIMESTAMP(6) + INTERVAL (lease + lease DIV 5) MICROSECOND)";

fn with_conditions(text: &str) -> String {
    text.replace("{to_hasten}\n", TO_HASTEN)
        .replace("{filter}\n", FILTER)
        .replace("{lease_is_valid}", LEASE_IS_VALID)
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
        pub(crate) struct Texts {
            $(pub(crate) $verb: Text,)+
        }

        impl Texts {
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
/// Comments stay here: the server would read them at every call.
fn split(sql: &str) -> Text {
    let lines = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let statements = code.split(";\n").map(str::trim).filter(|text| !text.is_empty());
    Text(statements.map(str::to_owned).collect())
}

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
        files.retain(|file| file != "filter" && file != "to_hasten");
        files.sort();
        let texts = Texts::new(&Names::default());
        let verbs: Vec<_> = texts.all().iter().map(|(verb, _)| (*verb).to_owned()).collect();
        assert_eq!(files, verbs);
    }

    #[test]
    fn texts_are_split_into_statements_without_their_comments() {
        let texts = Texts::new(&Names::default());
        for (verb, text) in texts.all() {
            assert!(!text.0.is_empty(), "{verb}");
            assert!(
                text.0.iter().all(|sql| !sql.contains("--") && !sql.contains(';')),
                "{verb}"
            );
        }
        assert_eq!(
            (texts.acquire.0.len(), texts.wait_again.0.len(), texts.list.0.len()),
            (4, 3, 1)
        );
    }
}
