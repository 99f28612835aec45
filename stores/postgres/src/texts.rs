//! The SQL texts, one file a verb, with the tables' names put in.

use sendoff::emit::Names;

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
                    $($verb: names.render(include_str!(concat!("../sql/", stringify!($verb), ".sql"))),)*
                }
            }
        }
    };
}

texts!(
    absolve,
    acquire,
    audit,
    backlog,
    blocked_keys,
    check_lanes,
    die_ready,
    die_waiting,
    enlist,
    evict,
    find,
    follow_on,
    heartbeat,
    hold_back,
    key_left,
    ledger_create,
    ledger_read,
    ledger_write,
    list,
    paused,
    read_due,
    read_ready,
    relays,
    release,
    release_orphans,
    remove_ready,
    remove_waiting,
    retire,
    retry_dead,
    settle_delivered,
    settle_done,
    settle_done_kept,
    settle_kept,
    split_waiting,
    summary,
    suspect,
    wait_again,
    wait_ready,
);
