//! Reads the audit: the actions of operators.

use rusqlite::{Connection, Row, Transaction, params};
use sendoff::Result;
use sendoff::store::{Action, AuditView, Command};

use super::filter::number;
use super::look::count;
use crate::clock::to_time;
use crate::sql::Sql;
use crate::store::Inner;

/// Writes down what an operator does, in the same transaction.
pub(super) fn write_audit(
    tx: &Transaction<'_>,
    sql: &Sql,
    who: &str,
    action: Action,
    asked: &str,
    affected: u64,
) -> rusqlite::Result<()> {
    write_batch(tx, sql, &Command::by(who), action, asked, affected).map(drop)
}

/// The same for one batch of a command: the first writes its row, the others add to it. Returns which row.
pub(super) fn write_batch(
    tx: &Transaction<'_>,
    sql: &Sql,
    command: &Command,
    action: Action,
    asked: &str,
    affected: u64,
) -> rusqlite::Result<i64> {
    let affected = i64::try_from(affected).unwrap_or(i64::MAX);
    if let Some(row) = command.row() {
        tx.prepare_cached(sql.audit_add.first())?.execute([row, affected])?;
        return Ok(row);
    }
    tx.prepare_cached(sql.audit.first())?
        .execute(params![command.who(), action.as_str(), asked, affected])?;
    Ok(tx.last_insert_rowid())
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
        // A file has no logins.
        login: None,
        who: row.get(1)?,
        action: row.get(2)?,
        filter: row.get(3)?,
        affected: count(row, 4)?,
    })
}
