//! Acting on messages that fit a filter. Every act is one transaction, with its note in the audit.

use std::time::SystemTime;

use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, params_from_iter};
use sendoff::Result;
use sendoff::store::Filter;

use super::filter::{as_asked, number, values};
use super::keys::{Released, let_go};
use super::write_audit;
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
        who: &str,
    ) -> Result<u64> {
        let (asked, who) = (filter.clone(), who.to_owned());
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let retried = retry_dead(tx, sql, &asked, until, limit)?;
            write_audit(tx, sql, &who, "retry", &as_asked(&asked), retried)?;
            Ok(retried)
        };
        self.act("dead letters could not be retried", act).await
    }

    pub(super) async fn hasten(&self, filter: &Filter, reset: bool, limit: usize, who: &str) -> Result<u64> {
        let (asked, who) = (filter.clone(), who.to_owned());
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let mut values = values(&asked);
            values.extend([Value::Integer(number(limit)), Value::Integer(i64::from(reset))]);
            let hastened = tx
                .prepare_cached(sql.hasten.first())?
                .execute(params_from_iter(values))?;
            let hastened = u64::try_from(hastened).unwrap_or(u64::MAX);
            let action = if reset { "reset" } else { "hasten" };
            write_audit(tx, sql, &who, action, &as_asked(&asked), hastened)?;
            Ok(hastened)
        };
        self.act("messages could not be made due", act).await
    }

    pub(super) async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        who: &str,
    ) -> Result<u64> {
        let (asked, who) = (filter.clone(), who.to_owned());
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let mut values = values(&asked);
            values.extend([Value::Integer(number(limit)), until_value(until)]);
            let mut statement = tx.prepare_cached(sql.discard_dead.first())?;
            let rows = statement.query_map(params_from_iter(values), Released::read)?;
            let gone: Vec<Released> = rows.collect::<rusqlite::Result<_>>()?;
            let_go(tx, sql, &gone)?;
            let discarded = u64::try_from(gone.len()).unwrap_or(u64::MAX);
            write_audit(tx, sql, &who, "discard", &as_asked(&asked), discarded)?;
            Ok(discarded)
        };
        self.act("dead letters could not be discarded", act).await
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
