//! The emit suite, and tests specific to sea-orm, on SQLite.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

use std::error::Error as StdError;

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr};
use sea_orm::{SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait};
use sendoff::emit::{Dialect, Names};
use sendoff::{Emitted, EmittedMany, Message, Outbox, Result};
use sendoff_sea_orm as _;
use sendoff_testkit::emit_suite::EmitHarness;
use tempfile::TempDir;

sendoff_testkit::emit_suite!(Harness);

const SCHEMA: &str = concat!(
    include_str!("../../../stores/sqlite/migrations/0001_outbox.sql"),
    include_str!("../../../stores/sqlite/migrations/0001_jobs.sql")
);

struct Harness {
    names: Names,
    folder: TempDir,
}

impl Harness {
    async fn connect(&self) -> DatabaseConnection {
        let url = format!("sqlite://{}?mode=rwc", self.folder.path().join("shop.db").display());
        Database::connect(ConnectOptions::new(url).max_connections(1).to_owned())
            .await
            .unwrap()
    }
}

impl EmitHarness for Harness {
    type Tx = DatabaseTransaction;

    const DIALECT: Dialect = Dialect::Sqlite;

    async fn fresh() -> Self {
        let harness = Self {
            names: Names::new(None, "shop_outbox_").unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        harness.execute(&harness.names.render(SCHEMA)).await;
        harness
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn begin(&self) -> Self::Tx {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        self.connect().await.begin_with_options(options).await.unwrap()
    }

    async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted> {
        outbox.emit(&*tx, message).await
    }

    async fn emit_many(&self, outbox: &Outbox, tx: &mut Self::Tx, messages: Vec<Message>) -> Result<EmittedMany> {
        outbox.emit_many(&*tx, messages).await
    }

    async fn commit(&self, tx: Self::Tx) {
        tx.commit().await.unwrap();
    }

    async fn rollback(&self, tx: Self::Tx) {
        tx.rollback().await.unwrap();
    }

    async fn execute(&self, sql: &str) {
        self.connect().await.execute_unprepared(sql).await.unwrap();
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        let query = Statement::from_string(DbBackend::Sqlite, sql);
        let rows = self.connect().await.query_all_raw(query).await.unwrap();
        rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        matches!(error.downcast_ref(), Some(DbErr::Exec(_) | DbErr::Query(_)))
    }
}
