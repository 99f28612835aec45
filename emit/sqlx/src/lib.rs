//! Emit Sendoff messages inside a sqlx transaction.
//!
//! Applications turn it on with a feature of the crate `sendoff`: `sqlx-postgres`, `sqlx-mysql` (also for MariaDB) or
//! `sqlx-sqlite`. [`sendoff::Outbox::emit`] then accepts `&mut sqlx::Transaction` of that database. Here the features
//! are `postgres`, `mysql` and `sqlite`.
//!
//! ```no_run
//! use sendoff::{Message, Outbox};
//! # use sendoff_sqlx as _;
//!
//! # async fn place_order(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::new();
//!
//! let mut tx = pool.begin().await?;
//! sqlx::query("INSERT INTO orders (id) VALUES (42)").execute(&mut *tx).await?;
//! let id = outbox.emit(&mut tx, Message::json("order.placed", &42)?.key("customer-7")).await?.id();
//! outbox.commit(tx).await?;
//! # Ok(())
//! # }
//! ```
//!
//! On SQLite start with `pool.begin_with("BEGIN IMMEDIATE")`: a transaction that takes the write lock only when it
//! emits may find the database busy then, and must start again.
//!
//! # Only inside a transaction
//!
//! A message outside the transaction of the application's own rows can be lost, or sent for rows that were never
//! committed. So pools and plain connections are not accepted:
//!
//! ```compile_fail,E0277
//! # use sendoff_sqlx as _;
//! # async fn with_a_pool(outbox: sendoff::Outbox, pool: sqlx::PgPool, message: sendoff::Message) {
//! outbox.emit(&pool, message).await;
//! # }
//! ```
//!
//! ```compile_fail,E0277
//! # use sendoff_sqlx as _;
//! # async fn with_a_connection(outbox: sendoff::Outbox, mut connection: sqlx::PgConnection, message: sendoff::Message) {
//! outbox.emit(&mut connection, message).await;
//! # }
//! ```
//!
//! ```compile_fail,E0277
//! # use sendoff_sqlx as _;
//! # async fn with_sqlite(outbox: sendoff::Outbox, mut connection: sqlx::SqliteConnection, message: sendoff::Message) {
//! outbox.emit(&mut connection, message).await;
//! # }
//! ```
//!
//! ```compile_fail,E0277
//! # use sendoff_sqlx as _;
//! # async fn with_mysql(outbox: sendoff::Outbox, mut connection: sqlx::MySqlConnection, message: sendoff::Message) {
//! outbox.emit(&mut connection, message).await;
//! # }
//! ```
//!
//! # Poolers
//!
//! Behind a pooler in transaction mode, named statements fail. On a connection without cached statements of the
//! application, the message is therefore written with an unnamed statement, which costs a second round trip; otherwise
//! the statement is cached like the application's own.
#![forbid(unsafe_code)]

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod texts;

#[cfg(feature = "mysql")]
pub use mysql::SqlxMysql;
#[cfg(feature = "postgres")]
pub use postgres::SqlxPostgres;
#[cfg(feature = "sqlite")]
pub use sqlite::SqlxSqlite;
