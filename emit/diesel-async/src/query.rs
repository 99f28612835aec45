//! Sendoff's statements as Diesel queries.

use std::borrow::Cow;

use diesel::QueryResult;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::Error;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use sendoff::emit::{Param, Statement};
use sendoff::{BoxError, Uuid};

pub(crate) async fn run(connection: &mut AsyncPgConnection, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
    let query = Emit(statement);
    if statement.returns_ids() {
        return Ok(query.load(connection).await?);
    }
    query.execute(connection).await?;
    Ok(Vec::new())
}

/// Unlike with `sql_query`, Diesel caches its prepared statement: the texts are few and never change, so every emit
/// except the first on a connection is one round trip.
struct Emit<'a>(&'a Statement<'a>);

impl QueryId for Emit<'_> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Emit<'_> {
    type SqlType = SqlUuid;
}

impl QueryFragment<Pg> for Emit<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let mut rest = self.0.sql();
        // Diesel writes the placeholders, in the order of the values.
        for (param, number) in self.0.params().iter().zip(1..) {
            let (before, after) = rest.split_once(&format!("${number}")).ok_or_else(|| {
                Error::QueryBuilderError(format!("the statement has no placeholder ${number}").into())
            })?;
            out.push_sql(before);
            bind(param, &mut out)?;
            rest = after;
        }
        out.push_sql(rest);
        Ok(())
    }
}

fn bind<'b>(param: &'b Param<'_>, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
    match param {
        Param::Uuid(id) => out.push_bind_param::<SqlUuid, Uuid>(id),
        Param::Text(text) => out.push_bind_param::<Nullable<Text>, Option<Cow<'_, str>>>(text),
        Param::Bytes(bytes) => out.push_bind_param::<Binary, [u8]>(bytes),
        Param::Int(int) => out.push_bind_param::<Nullable<BigInt>, Option<i64>>(int),
        Param::Uuids(ids) => out.push_bind_param::<Array<SqlUuid>, Vec<Uuid>>(ids),
        Param::Texts(texts) => out.push_bind_param::<Array<Nullable<Text>>, Vec<Option<Cow<'_, str>>>>(texts),
        Param::Blobs(blobs) => out.push_bind_param::<Array<Binary>, Vec<&[u8]>>(blobs),
        Param::Ints(ints) => out.push_bind_param::<Array<Nullable<BigInt>>, Vec<Option<i64>>>(ints),
    }
}
