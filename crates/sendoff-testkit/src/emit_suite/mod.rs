//! What every adapter crate must be able to do, run against its real database.
//!
//! An adapter's tests call [`emit_suite!`](crate::emit_suite), which declares a harness with [`Tables`] and makes a test of
//! each case, and implement [`EmitHarness`] with their driver.
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
mod inbox;
mod jobs;
mod many;
mod rows;
mod setup;
mod store;
mod tables;
mod wake;

use std::error::Error as StdError;
use std::ops::Deref;

use sendoff::emit::Dialect;
use sendoff::{Emitted, EmittedMany, Inbox, Message, Once, Outbox, Result, Uuid};

pub use content::*;
pub use dedup::*;
pub use failure::*;
pub use hooks::*;
pub use inbox::*;
pub use jobs::*;
pub use many::*;
pub use setup::{block_on, message, mysql_url, postgres_url};
pub use store::*;
pub use tables::Tables;
pub use wake::*;

/// A driver under test, with tables of its own in a real database.
pub trait EmitHarness: Sized + Sync + From<Tables> + Deref<Target = Tables> {
    /// An open transaction on a connection of its own. On SQLite it holds the write lock.
    type Tx;

    /// The database's dialect.
    const DIALECT: Dialect;

    /// Begins a transaction, on the runtime that polls this.
    async fn begin(&self) -> Self::Tx;

    /// `outbox.emit(tx, message)`.
    async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted>;

    /// `outbox.emit_many(tx, messages)`.
    async fn emit_many(&self, outbox: &Outbox, tx: &mut Self::Tx, messages: Vec<Message>) -> Result<EmittedMany>;

    /// `inbox.once(tx, id, consumer)`.
    async fn once(&self, inbox: &Inbox, tx: &mut Self::Tx, id: Uuid, consumer: &str) -> Result<Once>;

    /// `outbox.commit(tx)`, or what the driver has instead.
    async fn commit_by(&self, outbox: &Outbox, tx: Self::Tx);

    /// Rolls back.
    async fn rollback(&self, tx: Self::Tx);

    /// Runs SQL outside of every transaction.
    async fn execute(&self, sql: &str);

    /// The first column, text, of every row of a query outside of every transaction.
    async fn texts(&self, sql: &str) -> Vec<String>;

    /// Whether this is an error of the driver's own type.
    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool;

    /// Tables that nobody has used yet.
    async fn fresh(schema: &str) -> Self {
        let harness = Self::from(Tables::new(Self::DIALECT));
        harness.execute(&harness.create_sql(schema)).await;
        harness
    }

    /// Commits.
    async fn commit(&self, tx: Self::Tx) {
        self.commit_by(&self.outbox(), tx).await;
    }
}

/// The statements that create the tables of a store, as the crate under test finds them.
#[macro_export]
macro_rules! emit_schema {
    ($store:literal) => {
        concat!(
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../stores/",
                $store,
                "/migrations/0001_outbox.sql"
            )),
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../stores/",
                $store,
                "/migrations/0001_jobs.sql"
            ))
        )
    };
}

/// Declares the harness, with tables in the database of a store, and makes a test of every case of the suite. `spawned`
/// adds a test for drivers whose transactions can be sent to another thread.
#[macro_export]
macro_rules! emit_suite {
    ($harness:ident on $store:literal, spawned) => {
        $crate::emit_suite! { $harness on $store }

        #[tokio::test(flavor = "multi_thread")]
        async fn emitting_can_be_spawned() {
            let harness = fresh().await;
            let task = tokio::spawn(async move {
                let outbox = harness.outbox();
                let mut tx = harness.begin().await;
                let message = || $crate::emit_suite::message("a");
                let _ = harness.emit(&outbox, &mut tx, message()).await.unwrap();
                let two = vec![message(), message()];
                let _ = harness.emit_many(&outbox, &mut tx, two).await.unwrap();
                let once = message().idempotency_key("k");
                let _ = harness.emit(&outbox, &mut tx, once).await.unwrap();
                harness.commit_by(&outbox, tx).await;
                harness
            });
            let harness = task.await.unwrap();
            assert_eq!(harness.texts(&harness.sql("SELECT topic FROM outbox_message")).await, ["a"; 4]);
        }
    };
    ($harness:ident on $store:literal) => {
        struct $harness($crate::emit_suite::Tables);

        impl From<$crate::emit_suite::Tables> for $harness {
            fn from(tables: $crate::emit_suite::Tables) -> Self {
                Self(tables)
            }
        }

        impl std::ops::Deref for $harness {
            type Target = $crate::emit_suite::Tables;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        async fn fresh() -> $harness {
            <$harness as $crate::emit_suite::EmitHarness>::fresh($crate::emit_schema!($store)).await
        }

        $crate::emit_suite! { @cases
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
            a_commit_by_the_outbox_wakes_the_relay
            a_message_is_first_once_for_each_consumer
            a_consumer_that_crashes_before_its_commit_has_its_effect_once
            the_second_of_two_consumers_at_once_waits_for_the_first
        }
    };
    (@cases $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $crate::emit_suite::block_on(async { $crate::emit_suite::$case(&fresh().await).await });
            }
        )*
    };
}
