//! Actions on messages that match a filter. Every action is one transaction, which also writes the audit row.

use std::time::SystemTime;

use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, params_from_iter};
use sendoff::Result;
use sendoff::store::{Action, Command, Filter};

use super::audit::write_batch;
use super::filter::{as_asked, number, values};
use super::keys::{Released, let_go};
use crate::clock::from_time;
use crate::lease::write;
use crate::sql::Sql;
use crate::store::Inner;

impl Inner {
    pub(super) async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let batch = Batch {
            what: "dead letters could not be retried",
            action: Action::RetryDead,
            asked: as_asked(filter),
        };
        let filter = filter.clone();
        let act = move |tx: &Transaction<'_>, sql: &Sql| retry_dead(tx, sql, &filter, until, limit);
        self.act_for(command, batch, act, |retried| *retried).await
    }

    pub(super) async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let batch = Batch {
            what: "dead letters could not be discarded",
            action: Action::DiscardDead,
            asked: as_asked(filter),
        };
        let mut values = values(filter);
        values.extend([Value::Integer(number(limit)), until_value(until)]);
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let mut statement = tx.prepare_cached(sql.discard_dead.first())?;
            let rows = statement.query_map(params_from_iter(values), Released::read)?;
            let gone: Vec<Released> = rows.collect::<rusqlite::Result<_>>()?;
            let_go(tx, sql, &gone)?;
            Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
        };
        self.act_for(command, batch, act, |discarded| *discarded).await
    }

    /// Does one batch of a command, and writes it into the audit: `count` tells how much it changed.
    pub(crate) async fn act_for<T: Send + 'static>(
        &self,
        command: &mut Command,
        batch: Batch,
        act: impl FnOnce(&Transaction<'_>, &Sql) -> rusqlite::Result<T> + Send + 'static,
        count: impl FnOnce(&T) -> u64 + Send + 'static,
    ) -> Result<T> {
        let by = command.clone();
        let noted = move |tx: &Transaction<'_>, sql: &Sql| {
            let done = act(tx, sql)?;
            let row = write_batch(tx, sql, &by, batch.action, &batch.asked, count(&done))?;
            Ok((done, row))
        };
        let (done, row) = self.act(batch.what, noted).await?;
        command.is_noted(row);
        Ok(done)
    }

    /// Does something in a transaction on the operators' connection.
    pub(super) async fn act<T: Send + 'static>(
        &self,
        what: &'static str,
        act: impl FnOnce(&Transaction<'_>, &Sql) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let done = act(&tx, &sql)?;
            tx.commit()?;
            Ok(done)
        };
        self.operate.call(what, work).await
    }
}

fn until_value(until: Option<SystemTime>) -> Value {
    until.map_or(Value::Null, |at| Value::Integer(from_time(at)))
}

/// One batch of a command.
pub(crate) struct Batch {
    /// What could not be done, should it fail.
    pub(crate) what: &'static str,
    pub(crate) action: Action,
    /// On what, as JSON.
    pub(crate) asked: String,
}

/// One by one, because a letter whose place is taken stays, and does not count.
fn retry_dead(
    tx: &Transaction<'_>,
    sql: &Sql,
    filter: &Filter,
    until: Option<SystemTime>,
    limit: usize,
) -> rusqlite::Result<u64> {
    let mut fitting = tx.prepare_cached(sql.retry_dead.at(0))?;
    let mut values = values(filter);
    values.push(until_value(until));
    let letters = fitting.query_map(params_from_iter(values), |row| row.get(0))?;
    let letters: Vec<i64> = letters.collect::<rusqlite::Result<_>>()?;
    let mut bring_back = tx.prepare_cached(sql.retry_dead.at(1))?;
    let mut take_out = tx.prepare_cached(sql.retry_dead.at(2))?;
    let mut retried = 0;
    for letter in letters {
        if retried == limit {
            break;
        }
        if bring_back.execute([letter])? == 1 {
            take_out.execute([letter])?;
            retried += 1;
        }
    }
    Ok(u64::try_from(retried).unwrap_or(u64::MAX))
}
