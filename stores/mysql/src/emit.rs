//! Emit: a transaction of the store itself.

use std::sync::Arc;

use async_trait::async_trait;
use mysql_async::{Params, Value};
use sendoff::emit::{Dialect, OutboxTx, Param, Statement};
use sendoff::store::{EmitStore, EmitTransaction};
use sendoff::{BoxError, Emitted, Error, ErrorKind, Message, Outbox, Result, Uuid};

use crate::conflict::Attempts;
use crate::error::is_conflict;
use crate::pool::PooledConnection;
use crate::store::{Inner, MysqlStore};

const WHAT: &str = "the message could not be emitted";

impl Inner {
    pub(crate) async fn begin(store: &Arc<Self>, outbox: &Outbox) -> Result<Box<dyn EmitTransaction>> {
        let connection = store.emit_pool.begin(WHAT).await?;
        Ok(Box::new(OpenTransaction {
            outbox: outbox.clone(),
            connection,
            state: State::Empty,
        }))
    }
}

#[async_trait]
impl EmitStore for MysqlStore {
    async fn begin(&self) -> Result<Box<dyn EmitTransaction>> {
        Inner::begin(&self.0, &self.0.outbox).await
    }
}

/// Dropping it closes its connection, and the server rolls back.
struct OpenTransaction {
    outbox: Outbox,
    connection: PooledConnection,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was written yet: it can be begun again without anybody noticing.
    Empty,
    Written,
    /// The server rolled it back because it met another one. What came now would be committed without what came before.
    RolledBack,
}

impl OpenTransaction {
    fn is_usable(&self) -> Result<()> {
        if self.state == State::RolledBack {
            return Err(Error::new(ErrorKind::Busy, "the transaction was rolled back")
                .because("the transaction conflicted with another one")
                .next_step("start a new transaction"));
        }
        Ok(())
    }
}

#[async_trait]
impl EmitTransaction for OpenTransaction {
    async fn emit(&mut self, messages: &[Message]) -> Result<Vec<Emitted>> {
        self.is_usable()?;
        let outbox = self.outbox.clone();
        let mut attempts = Attempts::default();
        loop {
            let own = OwnTransaction(&mut self.connection);
            match outbox.emit_many(own, messages.iter().cloned()).await {
                Err(error) if is_conflict(&error) => {
                    let was_empty = self.state == State::Empty;
                    self.state = State::RolledBack;
                    // Also after a lock timeout, which leaves the transaction and its locks in place.
                    self.connection.script(WHAT, "ROLLBACK").await?;
                    if was_empty && attempts.again(&error).await {
                        self.connection.script(WHAT, "START TRANSACTION").await?;
                        self.state = State::Empty;
                        continue;
                    }
                    return Err(Error::new(ErrorKind::Busy, WHAT)
                        .because("the transaction conflicted with another one")
                        .next_step("start a new transaction")
                        .with_source(error));
                }
                answer => {
                    self.state = State::Written;
                    return answer.map(Into::into);
                }
            }
        }
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        self.is_usable()?;
        self.connection.commit("the transaction could not be committed").await?;
        self.connection.give_back();
        Ok(())
    }

    async fn rollback(mut self: Box<Self>) -> Result<()> {
        self.connection
            .script("the transaction could not be rolled back", "ROLLBACK")
            .await?;
        self.connection.give_back();
        Ok(())
    }
}

/// Marks our own implementation for our own transaction.
enum Own {}

struct OwnTransaction<'a>(&'a mut PooledConnection);

impl OutboxTx<Own> for OwnTransaction<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        let values = Params::Positional(statement.params().iter().map(value).collect());
        let rows = self.0.rows(WHAT, statement.sql(), values).await?;
        if !statement.returns_ids() {
            return Ok(Vec::new());
        }
        let id = |row| crate::decode::text(WHAT, row, 0).map(|id| Uuid::parse_str(&id));
        rows.iter().map(|row| Ok(id(row)??)).collect()
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
