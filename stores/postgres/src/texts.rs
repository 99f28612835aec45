//! The SQL texts, one file a verb, with the tables' names put in.

use sendoff::emit::Names;

/// The condition that several statements share; a line `{filter}` stands for it.
const FILTER: &str = include_str!("../sql/filter.sql");

macro_rules! texts {
    ($($verb:ident),* $(,)?) => {
        /// One text a file in `sql/`.
        #[derive(Debug)]
        pub(crate) struct Texts {
            $(pub(crate) $verb: String,)*
        }

        impl Texts {
            pub(crate) fn new(names: &Names) -> Self {
                Self {
                    $($verb: names.render(
                        &include_str!(concat!("../sql/", stringify!($verb), ".sql")).replace("{filter}\n", FILTER),
                    ),)*
                }
            }
        }
    };
}

texts!(
    absolve,
    acquire,
    audit,
    audits,
    backlog,
    blocked_keys,
    check_lanes,
    claim_items,
    clean_dead,
    clean_dedup,
    clean_delivered,
    clean_inbox,
    clean_items,
    clean_left,
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
    heartbeat,
    hold_back,
    keep_items,
    key_left,
    keys,
    lane_heads,
    lane_views,
    ledger_create,
    ledger_read,
    ledger_write,
    list,
    list_failed,
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
);
