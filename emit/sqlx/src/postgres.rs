//! PostgreSQL.

use sendoff::emit::{CommitTx, Dialect, OutboxTx, Param, Statement};
use sendoff::{BoxError, Uuid};
use sqlx::postgres::PgArguments;
use sqlx::{Arguments, AssertSqlSafe, Connection, Postgres, Row, Transaction};

/// Marks the adapter for `&mut sqlx::Transaction<'_, Postgres>`. The compiler infers it.
#[derive(Debug)]
pub enum SqlxPostgres {}

impl OutboxTx<SqlxPostgres> for &mut Transaction<'_, Postgres> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        let arguments = arguments(statement.params())?;
        // A named statement fails behind a pooler in transaction mode. If the application's own statements are cached,
        // there is no such pooler, so one more is safe and saves a round trip.
        let cached = self.cached_statements_size() > 0;
        let query = sqlx::query_with(AssertSqlSafe(statement.sql()), arguments).persistent(cached);
        if !statement.returns_ids() {
            query.execute(&mut ***self).await?;
            return Ok(Vec::new());
        }
        let rows = query.fetch_all(&mut ***self).await?;
        Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }
}

impl CommitTx<SqlxPostgres> for Transaction<'_, Postgres> {
    type Error = sqlx::Error;

    async fn commit(self) -> sqlx::Result<()> {
        Transaction::commit(self).await
    }
}

fn arguments(params: &[Param<'_>]) -> Result<PgArguments, BoxError> {
    let mut arguments = PgArguments::default();
    for param in params {
        match param {
            Param::Uuid(id) => arguments.add(id),
            Param::Text(text) => arguments.add(text.as_deref()),
            Param::Bytes(bytes) => arguments.add(*bytes),
            Param::Int(int) => arguments.add(int),
            Param::Uuids(ids) => arguments.add(ids),
            Param::Texts(texts) => arguments.add(texts),
            Param::Blobs(blobs) => arguments.add(blobs),
            Param::Ints(ints) => arguments.add(ints),
        }?;
    }
    Ok(arguments)
}
