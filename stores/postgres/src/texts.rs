//! The SQL texts, one file per verb, with the configured table names inserted.

use sendoff::columns::expand;
use sendoff::emit::{Dialect, Names};

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
    expand(Dialect::Postgres, &text)
}

macro_rules! texts {
    ($($verb:ident),* $(,)?) => {
        /// One text a file in `sql/`.
        #[derive(Debug)]
        pub(crate) struct Texts {
            $(pub(crate) $verb: String,)*
            /// `read_ready.sql` for a reader that has caught up: see the function.
            pub(crate) read_head: String,
            /// Of `read_ready.sql`, with the rows of a stretch.
            pub(crate) read_stretch: String,
            /// Sizes of ready rows: see `large.rs`.
            pub(crate) read_sizes: String,
            /// Sizes of rows that are due.
            pub(crate) read_due_sizes: String,
            /// Of `read_ready.sql`, with rows that were looked at: $1 their lanes, $2 their numbers, $3 their ids.
            pub(crate) read_some: String,
            /// Of `read_due.sql`, the same; $4 their deliveries.
            pub(crate) read_due_some: String,
            /// $1 who, $2 filter as JSON text, $3 how many, $4 the row of the command in the audit, or NULL.
            pub(crate) clean_up: String,
            /// $1 who, $2 filter as JSON text, $3 the row of the command in the audit, or NULL.
            pub(crate) reap: String,
            /// After `evict.sql`, where relays are left that a settlement keeps from being evicted: see the function.
            pub(crate) end_settlements: String,
        }

        impl Texts {
            pub(crate) fn new(names: &Names) -> Self {
                let [read_sizes, read_due_sizes] = crate::large::texts().map(|text| names.render(&whole(&text)));
                Self {
                    read_sizes,
                    read_due_sizes,
                    $($verb: names.render(
                        &whole(include_str!(concat!("../sql/", stringify!($verb), ".sql"))),
                    ),)*
                    read_head: names.render("SELECT * FROM outbox_read_head($1, $2, $3, $4)"),
                    read_stretch: names.render(&whole(&stretch())),
                    read_some: names.render(&whole(&some())),
                    read_due_some: names.render(&whole(&due_some())),
                    clean_up: names.render(
                        "SELECT noted, affected, more FROM outbox_clean_up($1, $2::text::jsonb, $3, $4)",
                    ),
                    reap: names.render(
                        "SELECT noted, affected, lanes, jobs, ended FROM outbox_reap($1, $2::text::jsonb, $3)",
                    ),
                    end_settlements: names.render(
                        "SELECT outbox_end_settlements() \
                         WHERE EXISTS (SELECT 1 FROM outbox_relay WHERE NOT outbox_is_lease(until, lease))",
                    ),
                }
            }
        }
    };
}

/// The same columns, other rows.
fn stretch() -> String {
    let text = include_str!("../sql/read_ready.sql");
    let columns = text.split("FROM unnest").next().unwrap_or(text);
    [columns, crate::stretch::FROM].concat()
}

fn some() -> String {
    let text = include_str!("../sql/read_ready.sql");
    let rows = text.split("UNION ALL").nth(1).unwrap_or(text);
    let columns = rows.split("FROM unnest").next().unwrap_or(rows);
    let from = "FROM unnest($1, $2, $3) AS s (lane, seq, id)
        JOIN outbox_message AS m ON m.lane = s.lane AND m.seq = s.seq AND m.id = s.id";
    [columns, from].concat()
}

fn due_some() -> String {
    let text = include_str!("../sql/read_due.sql");
    let columns = text.split("WHERE").next().unwrap_or(text);
    let which = "WHERE (lane, seq, id, sink) IN (SELECT * FROM unnest($1, $2, $3, $4))";
    [columns, which].concat()
}

sendoff::for_each_verb!(texts);

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &str = concat!(
        include_str!("../migrations/0001_outbox.sql"),
        include_str!("../migrations/0001_jobs.sql")
    );

    /// Without comments, and with one space between words.
    fn bare(sql: &str) -> String {
        let lines = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        words.join(" ")
    }

    #[test]
    fn functions_of_operators_do_what_relays_and_workers_do() {
        let steps = bare(STEPS);
        for (function, sql) in [
            ("follow_on", include_str!("../sql/follow_on.sql")),
            ("evict", include_str!("../sql/evict.sql")),
            ("reap_jobs", include_str!("../sql/reap_jobs.sql")),
            ("clean_jobs", include_str!("../sql/clean_jobs.sql")),
            ("clean_dead", include_str!("../sql/clean_dead.sql")),
            ("clean_dedup", include_str!("../sql/clean_dedup.sql")),
            ("clean_inbox", include_str!("../sql/clean_inbox.sql")),
        ] {
            let body = format!("BEGIN ATOMIC {}; END;", bare(sql));
            let (_, found) = steps
                .split_once(&format!("CREATE FUNCTION outbox_{function}("))
                .expect(function);
            let found = found.split_once("BEGIN ATOMIC").expect(function).1;
            assert!(format!("BEGIN ATOMIC{found}").starts_with(&body), "{function}");
        }
    }

    #[test]
    fn operators_change_what_they_are_shown() {
        let names = [
            ("outbox_payload_fits(", "@.outbox_payload_fits("),
            ("$14::text", "f.payload_paths"),
            ("$13::text", "f.search"),
            ("$16", "f.scheduled"),
            ("$15", "p_reset"),
            ("$14", "f.payload_paths"),
            ("$13", "f.search"),
            ("$12::timestamptz", "f.created_until"),
            ("$11::timestamptz", "f.created_from"),
            ("$10::bytea", "f.payload"),
            ("$12", "f.created_until"),
            ("$11", "f.created_from"),
            ("$10", "f.payload"),
            ("$9::text", "f.error"),
            ("$8::text", "f.sink"),
            ("$7::text", "f.idempotency_key"),
            ("$6::text", "f.aggregate_id"),
            ("$5::text", "f.aggregate_type"),
            ("$4::text", "f.key"),
            ("$3::text", "f.topic"),
            ("$2::text", "f.status"),
            ("$1::uuid[]", "f.ids"),
            ("$9", "f.error"),
            ("$8", "f.sink"),
            ("$7", "f.idempotency_key"),
            ("$6", "f.aggregate_id"),
            ("$5", "f.aggregate_type"),
            ("$4", "f.key"),
            ("$3", "f.topic"),
            ("$2", "f.status"),
            ("$1", "f.ids"),
        ];
        let named = |sql: &str| names.iter().fold(bare(sql), |sql, (from, to)| sql.replace(from, to));
        let (steps, filter) = (bare(STEPS), named(FILTER));
        assert_eq!(steps.matches(&filter).count(), 3, "{filter}");
        let of_jobs = filter.replace("AND (f.sink IS NULL OR a.sink = f.sink) ", "");
        assert_eq!(steps.matches(&of_jobs).count(), 2, "{of_jobs}");
        let to_retry = named(&whole(TO_RETRY));
        assert_eq!(steps.matches(&to_retry).count(), 1, "{to_retry}");
    }
}
