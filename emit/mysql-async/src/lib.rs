//! Emit Sendoff messages inside a mysql_async transaction, on MySQL or MariaDB.
//!
//! Applications turn it on with the feature `mysql-async` of the crate `sendoff`. [`sendoff::Outbox::emit`] then
//! accepts `&mut mysql_async::Transaction`.
//!
//! ```no_run
//! use mysql_async::prelude::Queryable;
//! use sendoff::{Message, Outbox};
//! # use sendoff_mysql_async as _;
//!
//! # async fn place_order(pool: mysql_async::Pool) -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::new();
//!
//! let mut tx = pool.start_transaction(Default::default()).await?;
//! tx.query_drop("INSERT INTO orders (id) VALUES (42)").await?;
//! let id = outbox.emit(&mut tx, Message::json("order.placed", &42)?.key("customer-7")).await?.id();
//! outbox.commit(tx).await?;
//! # Ok(())
//! # }
//! ```
//!
//! After a deadlock (error 1213) the server has rolled back the whole transaction, including the application's own
//! rows: start it again, as after any other statement of the transaction. A message without an idempotency key is a
//! plain `INSERT` and takes part in no deadlock.
//!
//! # Only inside a transaction
//!
//! A message outside the transaction of the application's own rows can be lost, or sent for rows that were never
//! committed. So a connection is not accepted:
//!
//! ```compile_fail,E0277
//! # use sendoff_mysql_async as _;
//! # async fn with_a_connection(outbox: sendoff::Outbox, mut conn: mysql_async::Conn, message: sendoff::Message) {
//! outbox.emit(&mut conn, message).await;
//! # }
//! ```
#![forbid(unsafe_code)]

use mysql_async::prelude::Queryable;
use mysql_async::{Params, Transaction, Value};
use sendoff::emit::{CommitTx, Dialect, OutboxTx, Param, Statement};
use sendoff::{BoxError, Uuid};

/// Marks the adapter for `&mut mysql_async::Transaction<'_>`. The compiler infers it.
#[derive(Debug)]
pub enum MysqlAsync {}

impl OutboxTx<MysqlAsync> for &mut Transaction<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        let values = Params::Positional(statement.params().iter().map(value).collect());
        if !statement.returns_ids() {
            self.exec_drop(statement.sql(), values).await?;
            return Ok(Vec::new());
        }
        let ids: Vec<String> = self.exec(statement.sql(), values).await?;
        Ok(ids.iter().map(|id| Uuid::parse_str(id)).collect::<Result<_, _>>()?)
    }
}

impl CommitTx<MysqlAsync> for Transaction<'_> {
    type Error = mysql_async::Error;

    async fn commit(self) -> mysql_async::Result<()> {
        Transaction::commit(self).await
    }
}

fn value(param: &Param<'_>) -> Value {
    match param {
        Param::Uuid(id) => Value::from(id.to_string()),
        Param::Text(text) => text.as_deref().map_or(Value::NULL, Value::from),
        Param::Bytes(bytes) => Value::from(*bytes),
        Param::Int(number) => Value::from(*number),
        // Statements of this dialect have no arrays.
        Param::Uuids(_) | Param::Texts(_) | Param::Blobs(_) | Param::Ints(_) => Value::NULL,
    }
}
