//! The SQL texts of a store: one file per verb, with the same file names in every store.

/// Calls a macro of the store with the names of all files in its folder `sql/` that are statements: first those that only
/// this store has, then those of all stores.
///
/// ```
/// macro_rules! texts {
///     ($($verb:ident),+ $(,)?) => {
///         const VERBS: &[&str] = &[$(stringify!($verb)),+];
///     };
/// }
/// sendoff::for_each_verb!(texts, audit);
/// assert_eq!(VERBS[..2], ["audit", "acquire"]);
/// ```
#[macro_export]
macro_rules! for_each_verb {
    ($texts:ident $(, $own:ident)* $(,)?) => {
        $texts!(
            $($own,)*
            acquire,
            audits,
            backlog,
            block_followers,
            blocked_keys,
            check_lanes,
            claim_jobs,
            clean_count,
            clean_dead,
            clean_dedup,
            clean_delivered,
            clean_inbox,
            clean_jobs,
            clean_needed,
            clear_quarantine,
            complete_jobs,
            count,
            count_jobs,
            deregister,
            die_ready,
            die_waiting,
            discard_dead,
            discard_failed,
            evict,
            extend_jobs,
            fail_job,
            find,
            follow_on,
            free_lanes,
            health,
            heartbeat,
            history,
            keep_jobs,
            key_left,
            keys,
            lane_heads,
            lane_views,
            ledger_create,
            ledger_read,
            list_jobs,
            now,
            pause,
            paused,
            pauses,
            quarantine,
            read_due,
            read_ready,
            reap_jobs,
            register,
            relay_figures,
            relays,
            release,
            release_jobs,
            release_key,
            release_orphans,
            remove_ready,
            remove_waiting,
            resume,
            retry_dead,
            retry_failed,
            retry_job,
            retry_waiting,
            retry_waiting_count,
            sample_dead,
            sample_jobs,
            sample_keys,
            sample_ready,
            sample_waiting,
            setting,
            settle_delivered,
            settle_done,
            settle_done_kept,
            settle_kept,
            split_waiting,
            summary,
            wait_again,
            wait_ready,
            write_figures,
            write_setting,
        );
    };
}

/// The statements of one file, in order.
#[derive(Debug)]
pub struct Text(Vec<String>);

impl Text {
    /// Splits a file. A statement ends with a semicolon at the end of its line; no text of ours has one elsewhere at the end of
    /// a line. Comments stay here: the server would read them at every call.
    pub fn split(sql: &str) -> Self {
        let lines = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
        let code: String = lines.flat_map(|line| [line, "\n"]).collect();
        let statements = code.split(";\n").map(str::trim).filter(|text| !text.is_empty());
        Self(statements.map(str::to_owned).collect())
    }

    /// The first statement, or the only one.
    pub fn first(&self) -> &str {
        self.at(0)
    }

    /// The statement at an index, counted from 0.
    pub fn at(&self, index: usize) -> &str {
        self.0.get(index).map_or("", String::as_str)
    }

    /// All statements.
    pub fn statements(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_into_statements_without_their_comments() {
        let text = Text::split("-- First; this.\nSELECT 1,\n    -- inside\n    2;\n\n-- Then that.\nSELECT 3\n");
        assert_eq!(text.statements(), ["SELECT 1,\n    2", "SELECT 3"]);
        assert_eq!(
            (text.first(), text.at(1), text.at(2)),
            ("SELECT 1,\n    2", "SELECT 3", "")
        );
    }
}
