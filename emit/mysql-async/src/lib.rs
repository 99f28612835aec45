//! Emit Sendoff messages inside a mysql_async transaction, on MySQL or MariaDB.
//!
//! Linking this crate is all there is to it: [`sendoff::Outbox::emit`] then takes `&mut mysql_async::Transaction`.
//!
//! ```no_run
//! use mysql_async::prelude::Queryable;
//! use sendoff::{Message, Outbox};
//! use sendoff_mysql_async as _;
//!
//! # async fn place_order(pool: mysql_async::Pool) -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::new();
//!
//! let mut tx = pool.start_transaction(Default::default()).await?;
//! tx.query_drop("INSERT INTO orders (id) VALUES (42)").await?;
//! outbox.emit(&mut tx, Message::json("order.placed", &42)?.key("customer-7")).await?;
//! tx.commit().await?;
//! outbox.wake();
//! # Ok(())
//! # }
//! ```
//!
//! After a deadlock (error 1213) the server has rolled the whole transaction back, the application's own rows with it:
//! begin again, as with every other statement of the transaction. A message without an idempotency key is a plain
//! `INSERT` and takes part in no deadlock.
//!
//! # Only a transaction will do
//!
//! A message that is not in the same transaction as the application's own rows can be lost, or sent for rows that never
//! came to be. So a connection is not accepted:
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
use sendoff::emit::{Dialect, OutboxTx, Param, Statement};
use sendoff::{BoxError, Uuid};

/// Marks the adapter for `&mut mysql_async::Transaction<'_>`. It is inferred and never written.
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

fn value(param: &Param<'_>) -> Value {
    match param {
        Param::Uuid(id) => Value::from(id.to_string()),
        Param::Text(text) => text.as_deref().map_or(Value::NULL, Value::from),
        Param::Bytes(bytes) => Value::from(*bytes),
        Param::Int(number) => Value::from(*number),
        // No statement of this dialect has arrays.
        Param::Uuids(_) | Param::Texts(_) | Param::Blobs(_) | Param::Ints(_) => Value::NULL,
    }
}
