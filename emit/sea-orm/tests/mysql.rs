//! The emit suite, and tests specific to sea-orm, on MySQL and MariaDB.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

use std::error::Error as StdError;

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr};
use sea_orm::{Statement, TransactionTrait};
use sendoff::emit::{Dialect, Names};
use sendoff::{Emitted, EmittedMany, Message, Outbox, Result};
use sendoff_sea_orm as _;
use sendoff_testkit::emit_suite::{self, EmitHarness};

sendoff_testkit::emit_suite!(Harness);

const SCHEMA: &str = concat!(
    include_str!("../../../stores/mysql/migrations/0001_outbox.sql"),
    include_str!("../../../stores/mysql/migrations/0001_jobs.sql")
);

struct Harness {
    names: Names,
}

impl Harness {
    async fn connect(&self) -> DatabaseConnection {
        Database::connect(
            ConnectOptions::new(emit_suite::mysql_url())
                .max_connections(1)
                .to_owned(),
        )
        .await
        .unwrap()
    }
}

impl EmitHarness for Harness {
    type Tx = DatabaseTransaction;

    const DIALECT: Dialect = Dialect::Mysql;

    async fn fresh() -> Self {
        let harness = Self {
            names: emit_suite::fresh_names(),
        };
        let create = format!("CREATE DATABASE {};", harness.names.schema().unwrap());
        harness.execute(&(create + &harness.names.render(SCHEMA))).await;
        harness
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn begin(&self) -> Self::Tx {
        self.connect().await.begin().await.unwrap()
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
        let query = Statement::from_string(DbBackend::MySql, sql);
        let rows = self.connect().await.query_all_raw(query).await.unwrap();
        rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        matches!(error.downcast_ref(), Some(DbErr::Exec(_) | DbErr::Query(_)))
    }
}
