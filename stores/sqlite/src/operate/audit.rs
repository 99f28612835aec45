//! What operators did.

use rusqlite::{Connection, Row, Transaction, params};
use sendoff::Result;
use sendoff::store::AuditView;

use super::filter::number;
use super::look::count;
use crate::clock::to_time;
use crate::sql::Sql;
use crate::store::Inner;

/// Writes down what an operator does, in the same transaction.
pub(crate) fn write_audit(
    tx: &Transaction<'_>,
    sql: &Sql,
    who: &str,
    action: &str,
    asked: &str,
    affected: u64,
) -> rusqlite::Result<()> {
    let affected = i64::try_from(affected).unwrap_or(i64::MAX);
    tx.prepare_cached(sql.audit.first())?
        .execute(params![who, action, asked, affected])?;
    Ok(())
}

impl Inner {
    pub(super) async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.audits.first())?;
            let rows = statement.query_map([number(limit)], view)?;
            rows.collect()
        };
        self.operate.call("the audit could not be read", work).await
    }
}

fn view(row: &Row<'_>) -> rusqlite::Result<AuditView> {
    Ok(AuditView {
        at: to_time(row.get(0)?),
        who: row.get(1)?,
        action: row.get(2)?,
        filter: row.get(3)?,
        affected: count(row, 4)?,
    })
}
