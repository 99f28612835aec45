//! Emit: a transaction of the store itself, on a separate connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use sendoff::emit::{Dialect, OutboxTx, Param, Statement};
use sendoff::store::{EmitStore, EmitTransaction};
use sendoff::{BoxError, Emitted, Message, Outbox, Result, Uuid};

use crate::SqliteStore;
use crate::connect::Connect;
use crate::store::Inner;
use crate::worker::Worker;

/// Connections for transactions, kept for the next one when one has ended.
#[derive(Debug)]
pub(crate) struct Spares {
    connect: Connect,
    idle: Mutex<Vec<Worker>>,
}

impl Spares {
    pub(crate) fn new(connect: Connect) -> Self {
        Self {
            connect,
            idle: Mutex::default(),
        }
    }

    fn take(&self) -> Result<Worker> {
        match self.idle().pop() {
            Some(worker) => Ok(worker),
            None => Worker::start("emit", self.connect.clone()),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl EmitStore for SqliteStore {
    async fn begin(&self) -> Result<Box<dyn EmitTransaction>> {
        self.0.begin(&self.0.outbox).await
    }
}

impl Inner {
    pub(crate) async fn begin(&self, outbox: &Outbox) -> Result<Box<dyn EmitTransaction>> {
        let transaction = EmitTx {
            worker: Some(self.emit.take()?),
            spares: self.emit.clone(),
            outbox: outbox.clone(),
        };
        transaction
            .run("a transaction could not be started", "BEGIN IMMEDIATE")
            .await?;
        Ok(Box::new(transaction))
    }
}

struct EmitTx {
    /// Taken out when this is dropped, and not before.
    worker: Option<Worker>,
    spares: Arc<Spares>,
    outbox: Outbox,
}

impl EmitTx {
    async fn run(&self, what: &'static str, statement: &'static str) -> Result<()> {
        let work = |connection: &mut Connection| connection.prepare_cached(statement)?.execute([]).map(|_| ());
        match &self.worker {
            Some(worker) => worker.call(what, work).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl EmitTransaction for EmitTx {
    async fn emit(&mut self, messages: &[Message]) -> Result<Vec<Emitted>> {
        let (outbox, messages) = (self.outbox.clone(), messages.to_vec());
        let work = move |connection: &mut Connection| Ok(outbox.emit_many_blocking(Borrowed(connection), messages));
        match &self.worker {
            Some(worker) => {
                let emitted = worker.call("the message could not be written to the outbox", work);
                emitted.await?.map(Into::into)
            }
            None => Ok(Vec::new()),
        }
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.run("the transaction could not be committed", "COMMIT").await
    }

    async fn rollback(self: Box<Self>) -> Result<()> {
        self.run("the transaction could not be rolled back", "ROLLBACK").await
    }
}

impl Drop for EmitTx {
    fn drop(&mut self) {
        let Some(worker) = self.worker.take() else { return };
        // Whatever is still open. Work is done in order, so the next transaction on this connection begins after it.
        worker.post(|opened| {
            opened.is_ok_and(|opened| opened.is_autocommit() || opened.execute_batch("ROLLBACK").is_ok())
        });
        self.spares.idle().push(worker);
    }
}

/// The marker of the implementation below.
struct Own;

/// The connection of a transaction that is open.
struct Borrowed<'a>(&'a Connection);

impl OutboxTx<Own> for Borrowed<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        let mut prepared = self.0.prepare_cached(statement.sql())?;
        let values = params_from_iter(statement.params().iter().map(bind));
        if !statement.returns_ids() {
            prepared.execute(values)?;
            return Ok(Vec::new());
        }
        let mut rows = prepared.query(values)?;
        let mut ids = Vec::new();
        while let Some(row) = rows.next()? {
            ids.push(Uuid::parse_str(row.get_ref(0)?.as_str()?)?);
        }
        Ok(ids)
    }
}

fn bind<'a>(param: &'a Param<'_>) -> ToSqlOutput<'a> {
    match param {
        Param::Uuid(id) => ToSqlOutput::Owned(Value::Text(id.to_string())),
        Param::Text(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        Param::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        Param::Int(Some(number)) => ToSqlOutput::Owned(Value::Integer(*number)),
        Param::Text(None) | Param::Int(None) => ToSqlOutput::Owned(Value::Null),
        // No statement of this dialect has arrays.
        Param::Uuids(_) | Param::Texts(_) | Param::Blobs(_) | Param::Ints(_) => ToSqlOutput::Owned(Value::Null),
    }
}
