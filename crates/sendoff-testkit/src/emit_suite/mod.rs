//! What every adapter crate must be able to do, run against its real database.
//!
//! An adapter's tests implement [`EmitHarness`] for its driver and call [`emit_suite!`](crate::emit_suite), which makes
//! a test of each case.
#![allow(
    async_fn_in_trait,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a suite fails by panicking, and runs each case on one thread"
)]

mod content;
mod dedup;
mod failure;
mod hooks;
mod jobs;
mod many;
mod rows;
mod setup;
mod store;

use std::error::Error as StdError;

use sendoff::emit::{Dialect, Names};
use sendoff::{Emitted, EmittedMany, Message, Outbox, Result};

pub use content::*;
pub use dedup::*;
pub use failure::*;
pub use hooks::*;
pub use jobs::*;
pub use many::*;
pub use setup::{block_on, fresh_names, mysql_url, postgres_url};
pub use store::*;

/// A driver under test, with tables of its own in a real database.
pub trait EmitHarness: Sized + Sync {
    /// An open transaction on a connection of its own. On SQLite it holds the write lock.
    type Tx;

    /// The database's dialect.
    const DIALECT: Dialect;

    /// Tables that nobody has used yet.
    async fn fresh() -> Self;

    /// Where they are.
    fn names(&self) -> &Names;

    /// Begins a transaction, on the runtime that polls this.
    async fn begin(&self) -> Self::Tx;

    /// `outbox.emit(tx, message)`.
    async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted>;

    /// `outbox.emit_many(tx, messages)`.
    async fn emit_many(&self, outbox: &Outbox, tx: &mut Self::Tx, messages: Vec<Message>) -> Result<EmittedMany>;

    /// Commits.
    async fn commit(&self, tx: Self::Tx);

    /// Rolls back.
    async fn rollback(&self, tx: Self::Tx);

    /// Runs SQL outside of every transaction.
    async fn execute(&self, sql: &str);

    /// The first column, text, of every row of a query outside of every transaction.
    async fn texts(&self, sql: &str) -> Vec<String>;

    /// Whether this is an error of the driver's own type.
    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool;
}

/// Makes a test of every case of the suite.
#[macro_export]
macro_rules! emit_suite {
    ($harness:ty) => {
        $crate::emit_suite! { @cases $harness:
            a_committed_message_is_there
            a_rolled_back_message_never_existed
            every_field_is_stored
            a_duplicate_names_the_first_message
            a_key_of_a_rolled_back_transaction_is_free
            a_duplicate_that_is_to_fail_leaves_the_transaction_usable
            a_second_event_of_an_aggregate_fails_unless_its_key_is_chosen
            a_duplicate_among_many_fails_after_the_others_are_written
            concurrent_emits_of_one_idempotency_key_store_exactly_one
            a_thousand_messages_are_one_statement_in_order
            a_thousand_messages_with_idempotency_keys_are_stored_in_order
            payloads_stay_byte_identical
            a_payload_above_the_limit_never_reaches_the_database
            text_survives_whatever_it_looks_like
            scheduled_messages_wait
            created_hooks_run_after_the_row_is_written
            a_created_hook_can_refuse_many
            the_callers_context_is_stored
            a_missing_table_is_explained
            jobs_are_emitted_like_messages
        }
    };
    (@cases $harness:ty: $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $crate::emit_suite::block_on(async {
                    let harness = <$harness as $crate::emit_suite::EmitHarness>::fresh().await;
                    $crate::emit_suite::$case(&harness).await;
                });
            }
        )*
    };
}
