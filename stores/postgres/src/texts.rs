//! The SQL texts, one file a verb, with the tables' names put in.

use sendoff::emit::Names;

/// Conditions that several statements share; a line `{filter}` or `{to_hasten}` stands for one.
const FILTER: &str = include_str!("../sql/filter.sql");
const TO_HASTEN: &str = include_str!("../sql/to_hasten.sql");

fn with_conditions(text: &str) -> String {
    text.replace("{to_hasten}\n", TO_HASTEN).replace("{filter}\n", FILTER)
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
            /// Of `read_due.sql`, the same; $4 their legs.
            pub(crate) read_due_some: String,
            /// After `evict.sql`, where relays are left that a settlement keeps from being evicted: see the function.
            pub(crate) end_settlements: String,
        }

        impl Texts {
            pub(crate) fn new(names: &Names) -> Self {
                let [read_sizes, read_due_sizes] = crate::large::texts().map(|text| names.render(&text));
                Self {
                    read_sizes,
                    read_due_sizes,
                    $($verb: names.render(
                        &with_conditions(include_str!(concat!("../sql/", stringify!($verb), ".sql"))),
                    ),)*
                    read_head: names.render("SELECT * FROM outbox_read_head($1, $2, $3, $4)"),
                    read_stretch: names.render(&stretch()),
                    read_some: names.render(&some()),
                    read_due_some: names.render(&due_some()),
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
    let which = "WHERE (lane, seq, id, leg) IN (SELECT * FROM unnest($1, $2, $3, $4))";
    [columns, which].concat()
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
