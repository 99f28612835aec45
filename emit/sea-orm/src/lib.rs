//! Emit Sendoff messages inside a sea-orm transaction.
//!
//! Linking this crate is all there is to it: [`sendoff::Outbox::emit`] then takes `&sea_orm::DatabaseTransaction`, on
//! PostgreSQL, on MySQL and MariaDB, and on SQLite.
//!
//! ```no_run
//! use sea_orm::{ConnectionTrait, DatabaseConnection, TransactionTrait};
//! use sendoff::{Message, Outbox};
//! use sendoff_sea_orm as _;
//!
//! # async fn place_order(db: DatabaseConnection) -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::new();
//!
//! let tx = db.begin().await?;
//! tx.execute_unprepared("INSERT INTO orders (id) VALUES (42)").await?;
//! outbox.emit(&tx, Message::json("order.placed", &42)?.key("customer-7")).await?;
//! tx.commit().await?;
//! outbox.wake();
//! # Ok(())
//! # }
//! ```
//!
//! On SQLite begin with [`SqliteTransactionMode::Immediate`](sea_orm::SqliteTransactionMode::Immediate): a transaction
//! that takes the write lock only when it emits may find the database busy then, and has to start over.
//!
//! # Only a transaction will do
//!
//! A message that is not in the same transaction as the application's own rows can be lost, or sent for rows that never
//! came to be. So a connection is not accepted:
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

use sendoff::emit::{Dialect, OutboxTx, Statement};
use sendoff::{BoxError, Uuid};

/// Marks the adapter for `&sea_orm::DatabaseTransaction`. It is inferred and never written.
#[derive(Debug)]
pub enum SeaOrm {}

impl OutboxTx<SeaOrm> for &DatabaseTransaction {
    fn dialect(&self) -> Dialect {
        // A database without a dialect is refused by `run`, which can say why.
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

fn id(dialect: Dialect, row: &QueryResult) -> Result<Uuid, BoxError> {
    match dialect {
        Dialect::Postgres => Ok(row.try_get_by_index(0)?),
        // The others have no type for it.
        _ => Ok(row.try_get_by_index::<String>(0)?.parse()?),
    }
}
