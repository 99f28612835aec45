//! MySQL and MariaDB.

use std::borrow::Cow;

use diesel::QueryResult;
use diesel::mysql::Mysql;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::{Error, UnexpectedEndOfRow};
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel_async::{AsyncMysqlConnection, RunQueryDsl};

use sendoff::emit::{Dialect, OutboxTx, Param, Statement};
use sendoff::{BoxError, Uuid};

use crate::transaction;

/// Marks the adapter for `&mut AsyncMysqlConnection`. The compiler infers it.
#[derive(Debug)]
pub enum DieselAsyncMysql {}

impl OutboxTx<DieselAsyncMysql> for &mut AsyncMysqlConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        transaction::warn_if_none(&mut **self);
        let query = Emit::new(statement);
        if !statement.returns_ids() {
            query.execute(self).await?;
            return Ok(Vec::new());
        }
        let ids: Vec<String> = match query.load(self).await {
            // The procedure returned no rows.
            Err(Error::DeserializationError(error)) if error.is::<UnexpectedEndOfRow>() => Vec::new(),
            loaded => loaded?,
        };
        Ok(ids.iter().map(|id| id.parse()).collect::<Result<_, _>>()?)
    }
}

/// Unlike with `sql_query`, Diesel caches its prepared statement: the texts are few and never change.
struct Emit<'a> {
    statement: &'a Statement<'a>,
    /// The text of every id among the values. It must live as long as the query.
    ids: Vec<Option<String>>,
}

impl<'a> Emit<'a> {
    fn new(statement: &'a Statement<'a>) -> Self {
        let id = |param: &Param<'_>| match param {
            Param::Uuid(id) => Some(id.to_string()),
            _ => None,
        };
        Self {
            statement,
            ids: statement.params().iter().map(id).collect(),
        }
    }
}

impl QueryId for Emit<'_> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Emit<'_> {
    type SqlType = Text;
}

impl QueryFragment<Mysql> for Emit<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Mysql>) -> QueryResult<()> {
        let mut rest = self.statement.sql();
        // Diesel writes the placeholders, in the order of the values.
        for (param, id) in self.statement.params().iter().zip(&self.ids) {
            let (before, after) = rest
                .split_once('?')
                .ok_or_else(|| unfit("the statement has more values than placeholders"))?;
            out.push_sql(before);
            bind(param, id, &mut out)?;
            rest = after;
        }
        out.push_sql(rest);
        Ok(())
    }
}

fn bind<'b>(param: &'b Param<'_>, id: &'b Option<String>, out: &mut AstPass<'_, 'b, Mysql>) -> QueryResult<()> {
    match param {
        Param::Uuid(_) => out.push_bind_param::<Nullable<Text>, Option<String>>(id),
        Param::Text(text) => out.push_bind_param::<Nullable<Text>, Option<Cow<'_, str>>>(text),
        Param::Bytes(bytes) => out.push_bind_param::<Binary, [u8]>(bytes),
        Param::Int(int) => out.push_bind_param::<Nullable<BigInt>, Option<i64>>(int),
        Param::Uuids(_) | Param::Texts(_) | Param::Blobs(_) | Param::Ints(_) => Err(unfit("MySQL cannot bind arrays")),
    }
}

/// The statement is for another dialect, or from another version of `sendoff`.
fn unfit(why: &str) -> Error {
    Error::QueryBuilderError(why.into())
}
