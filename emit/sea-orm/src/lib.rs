//! Emit Sendoff messages inside a sea-orm transaction.
//!
//! Applications turn it on with the feature `sea-orm` of the crate `sendoff`. [`sendoff::Outbox::emit`] then accepts
//! `&sea_orm::DatabaseTransaction`, on PostgreSQL, on MySQL and MariaDB, and on SQLite.
//!
//! ```no_run
//! use sea_orm::{ConnectionTrait, DatabaseConnection, TransactionTrait};
//! use sendoff::{Message, Outbox};
//! # use sendoff_sea_orm as _;
//!
//! # async fn place_order(db: DatabaseConnection) -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::new();
//!
//! let tx = db.begin().await?;
//! tx.execute_unprepared("INSERT INTO orders (id) VALUES (42)").await?;
//! let id = outbox.emit(&tx, Message::json("order.placed", &42)?.key("customer-7")).await?.id();
//! outbox.commit(tx).await?;
//! # Ok(())
//! # }
//! ```
//!
//! On SQLite start with [`SqliteTransactionMode::Immediate`](sea_orm::SqliteTransactionMode::Immediate): a transaction
//! that takes the write lock only when it emits may find the database busy then, and must start again.
//!
//! # Only inside a transaction
//!
//! A message outside the transaction of the application's own rows can be lost, or sent for rows that were never
//! committed. So a connection is not accepted:
//!
//! ```compile_fail,E0277
//! # use sendoff_sea_orm as _;
//! # async fn with_a_connection(outbox: sendoff::Outbox, db: sea_orm::DatabaseConnection, message: sendoff::Message) {
//! outbox.emit(&db, message).await;
//! # }
//! ```
#![forbid(unsafe_code)]

mod array;
mod backend;
mod value;

use sea_orm::{ConnectionTrait, DatabaseTransaction, QueryResult};

use sendoff::emit::{CommitTx, Dialect, OutboxTx, Statement};
use sendoff::{BoxError, Uuid};

/// Marks the adapter for `&sea_orm::DatabaseTransaction`. The compiler infers it.
#[derive(Debug)]
pub enum SeaOrm {}

impl OutboxTx<SeaOrm> for &DatabaseTransaction {
    fn dialect(&self) -> Dialect {
        // `run` rejects an unsupported database, because it can return an error.
        backend::dialect(self.get_database_backend()).unwrap_or(Dialect::Postgres)
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        let backend = self.get_database_backend();
        let dialect = backend::dialect(backend)?;
        let values = value::values(dialect, statement.params())?;
        let query = sea_orm::Statement::from_sql_and_values(backend, statement.sql(), values);
        if !statement.returns_ids() {
            self.execute_raw(query).await?;
            return Ok(Vec::new());
        }
        let rows = self.query_all_raw(query).await?;
        rows.iter().map(|row| id(dialect, row)).collect()
    }
}

impl CommitTx<SeaOrm> for DatabaseTransaction {
    type Error = sea_orm::DbErr;

    async fn commit(self) -> Result<(), sea_orm::DbErr> {
        DatabaseTransaction::commit(self).await
    }
}

fn id(dialect: Dialect, row: &QueryResult) -> Result<Uuid, BoxError> {
    match dialect {
        Dialect::Postgres => Ok(row.try_get_by_index(0)?),
        // The other databases have no UUID type.
        _ => Ok(row.try_get_by_index::<String>(0)?.parse()?),
    }
}
