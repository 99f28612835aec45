//! Emit: a transaction of the store itself.

use std::sync::Arc;

use async_trait::async_trait;
use sendoff::emit::{Dialect, OutboxTx, Param as Value, Statement};
use sendoff::store::{EmitStore, EmitTransaction};
use sendoff::{BoxError, Emitted, Message, Outbox, Result, Uuid};
use tokio_postgres::types::{ToSql, Type};

use crate::listen::channel;
use crate::pipeline::Param;
use crate::pool::PooledConnection;
use crate::store::{Inner, PostgresStore};

const WHAT: &str = "the message could not be emitted";

impl Inner {
    pub(crate) async fn begin(store: &Arc<Self>, outbox: &Outbox) -> Result<Box<dyn EmitTransaction>> {
        let connection = store.emit_pool.get().await?;
        connection.begin(WHAT, &[]).await?;
        Ok(Box::new(OpenTransaction {
            store: Arc::clone(store),
            outbox: outbox.clone(),
            connection,
        }))
    }
}

#[async_trait]
impl EmitStore for PostgresStore {
    async fn begin(&self) -> Result<Box<dyn EmitTransaction>> {
        Inner::begin(&self.0, &self.0.outbox).await
    }
}

/// Dropping it closes its connection, and the server rolls back.
struct OpenTransaction {
    store: Arc<Inner>,
    outbox: Outbox,
    connection: PooledConnection,
}

#[async_trait]
impl EmitTransaction for OpenTransaction {
    async fn emit(&mut self, messages: &[Message]) -> Result<Vec<Emitted>> {
        self.outbox
            .emit_many(OwnTransaction(&self.connection), messages.iter().cloned())
            .await
            .map(Into::into)
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.connection
            .commit("the transaction could not be committed", &[])
            .await?;
        // After the commit, in a transaction of its own: inside, it would make all commits queue up.
        let channel = channel(&self.store.config.names);
        if let Err(error) = self
            .connection
            .run(WHAT, "SELECT pg_notify($1, '')", &[(&channel, Type::TEXT)])
            .await
        {
            tracing::debug!(event = "notify_failed", %error, "cannot notify relays; they find the messages when they poll");
            return Ok(());
        }
        self.connection.give_back();
        Ok(())
    }

    async fn rollback(self: Box<Self>) -> Result<()> {
        self.connection
            .script("the transaction could not be rolled back", "ROLLBACK")
            .await?;
        self.connection.give_back();
        Ok(())
    }
}

/// Marks our own implementation for our own transaction.
enum Own {}

struct OwnTransaction<'a>(&'a PooledConnection);

impl OutboxTx<Own> for OwnTransaction<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        let params: Vec<Param<'_>> = statement.params().iter().map(param).collect();
        let rows = self.0.run_next(WHAT, statement.sql(), &params).await?;
        if !statement.returns_ids() {
            return Ok(Vec::new());
        }
        rows.iter().map(|row| row.try_get(0).map_err(Into::into)).collect()
    }
}

fn param<'a>(value: &'a Value<'_>) -> Param<'a> {
    fn typed<T: ToSql + Sync>(value: &T, kind: Type) -> Param<'_> {
        (value, kind)
    }
    match value {
        Value::Uuid(id) => typed(id, Type::UUID),
        Value::Text(text) => typed(text, Type::TEXT),
        Value::Bytes(bytes) => typed(bytes, Type::BYTEA),
        Value::Int(number) => typed(number, Type::INT8),
        Value::Uuids(ids) => typed(ids, Type::UUID_ARRAY),
        Value::Texts(texts) => typed(texts, Type::TEXT_ARRAY),
        Value::Blobs(blobs) => typed(blobs, Type::BYTEA_ARRAY),
        Value::Ints(numbers) => typed(numbers, Type::INT8_ARRAY),
    }
}
