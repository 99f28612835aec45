//! MySQL and MariaDB.

use sendoff::emit::{Dialect, OutboxTx, Param, Statement};
use sendoff::{BoxError, Error, ErrorKind, Uuid};
use sqlx::mysql::MySqlArguments;
use sqlx::{Arguments, AssertSqlSafe, MySql, Row, Transaction};

/// Marks the adapter for `&mut sqlx::Transaction<'_, MySql>`. The compiler infers it.
#[derive(Debug)]
pub enum SqlxMysql {}

impl OutboxTx<SqlxMysql> for &mut Transaction<'_, MySql> {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        let query = sqlx::query_with(AssertSqlSafe(statement.sql()), arguments(statement.params())?);
        if !statement.returns_ids() {
            query.execute(&mut ***self).await?;
            return Ok(Vec::new());
        }
        let rows = query.fetch_all(&mut ***self).await?;
        rows.iter().map(|row| Ok(row.try_get::<&str, _>(0)?.parse()?)).collect()
    }
}

fn arguments(params: &[Param<'_>]) -> Result<MySqlArguments, BoxError> {
    let mut arguments = MySqlArguments::default();
    for param in params {
        match param {
            Param::Uuid(id) => arguments.add(id.to_string()),
            Param::Text(text) => arguments.add(text.as_deref()),
            Param::Bytes(bytes) => arguments.add(*bytes),
            Param::Int(int) => arguments.add(*int),
            Param::Uuids(_) | Param::Texts(_) | Param::Blobs(_) | Param::Ints(_) => Err(no_arrays().into()),
        }?;
    }
    Ok(arguments)
}

fn no_arrays() -> Error {
    Error::new(ErrorKind::Unsupported, "MySQL cannot bind arrays")
        .because("the statement is for another database")
        .next_step("use the same version of every sendoff crate")
}
