//! Changes by operators: one transaction each, which also writes the audit row.

use std::collections::BTreeSet;
use std::time::SystemTime;

use mysql_async::{Row, Value, params};
use sendoff::store::{Action, Command, Filter};
use sendoff::{Error, ErrorKind, Result};
use serde_json::{Value as Json, json};

use super::filter::values;
use super::only;
use crate::conflict::transact;
use crate::decode::{from_time, limit, number, text, text_or_null};
use crate::pool::PooledConnection;
use crate::store::Inner;

/// What an operator does, for the audit.
pub(crate) struct Act<'a> {
    /// What could not be done, should it fail.
    pub(crate) what: &'a str,
    pub(crate) action: Action,
    /// To what, as JSON.
    pub(crate) filter: String,
    pub(crate) who: &'a str,
}

impl<'a> Act<'a> {
    pub(crate) fn new(what: &'a str, action: Action, filter: &Filter, who: &'a str) -> Result<Self> {
        let filter = serde_json::to_string(filter).map_err(|error| {
            Error::new(ErrorKind::Invalid, what)
                .because("the filter cannot be serialised")
                .with_source(error)
        })?;
        Ok(Self {
            what,
            action,
            filter,
            who,
        })
    }
}

impl Inner {
    pub(crate) async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        most: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("dead letters could not be retried", Action::RetryDead, filter, &who)?;
        let mut values = values(filter);
        values.push(("limit", limit(most).into()));
        values.push(("until", until.map(from_time).into()));
        let row = command.row();
        let (back, row) = transact!(self.operate_pool, act.what, connection => {
            self.bring_back(&mut connection, &act, row, &values).await
        })?;
        command.is_noted(row);
        Ok(back)
    }

    async fn bring_back(
        &self,
        connection: &mut PooledConnection,
        act: &Act<'_>,
        row: Option<i64>,
        values: &[(&'static str, Value)],
    ) -> Result<(u64, i64)> {
        let sql = &self.texts.retry_dead;
        let letters = connection.rows(act.what, sql.at(0), values.to_vec()).await?;
        let mut back = 0;
        if let Some(rows) = row_refs(act.what, &letters)? {
            connection
                .change(act.what, sql.at(1), params! { "rows" => &rows })
                .await?;
            back = connection
                .change(act.what, sql.at(2), params! { "rows" => rows })
                .await?;
        }
        let row = self.write_batch(connection, act, row, back).await?;
        Ok((back, row))
    }

    pub(crate) async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        most: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("dead letters could not be discarded", Action::DiscardDead, filter, &who)?;
        let mut values = values(filter);
        values.push(("limit", limit(most).into()));
        values.push(("until", until.map(from_time).into()));
        let (sql, row) = (&self.texts.discard_dead, command.row());
        let (gone, row) = transact!(self.operate_pool, act.what, connection => {
            self.unblock(&mut connection, &act, row, (sql.at(0), sql.at(1)), &values).await
        })?;
        command.is_noted(row);
        Ok(gone)
    }

    pub(crate) async fn release_key(&self, key: &str, sink: Option<&str>, who: &str) -> Result<u64> {
        let filter = Filter {
            key: Some(key.to_owned()),
            sink: sink.map(str::to_owned),
            ..Filter::default()
        };
        let act = Act::new("the key could not be released", Action::ReleaseKey, &filter, who)?;
        let values = [("key", Value::from(key)), ("sink", Value::from(sink))];
        let sql = &self.texts.release_key;
        let (released, _) = transact!(self.operate_pool, act.what, connection => {
            self.unblock(&mut connection, &act, None, (sql.at(0), sql.at(1)), &values).await
        })?;
        Ok(released)
    }

    /// Finds dead letters, does something with them, and lets those go that waited behind them. What a relay is holding
    /// back at this very moment is not seen here; it finds such rows by itself.
    async fn unblock(
        &self,
        connection: &mut PooledConnection,
        act: &Act<'_>,
        row: Option<i64>,
        (find, change): (&str, &str),
        values: &[(&'static str, Value)],
    ) -> Result<(u64, i64)> {
        let letters = connection.rows(act.what, find, values.to_vec()).await?;
        if let Some(rows) = row_refs(act.what, &letters)? {
            connection.change(act.what, change, params! { "rows" => rows }).await?;
        }
        let mut keys: BTreeSet<(i64, String, String)> = BTreeSet::new();
        for letter in &letters {
            if let Some(key) = text_or_null(act.what, letter, 4)? {
                keys.insert((number(act.what, letter, 0)?, key, text(act.what, letter, 2)?));
            }
        }
        let keys: Vec<Json> = keys.iter().map(|(lane, key, sink)| json!([lane, key, sink])).collect();
        self.follow_on(connection, act.what, &keys).await?;
        let found = letters.len() as u64;
        let row = self.write_batch(connection, act, row, found).await?;
        Ok((found, row))
    }

    /// The last thing in the transaction.
    pub(crate) async fn write_audit(
        &self,
        connection: &mut PooledConnection,
        act: &Act<'_>,
        affected: u64,
    ) -> Result<u64> {
        self.write_batch(connection, act, None, affected).await?;
        Ok(affected)
    }

    /// The same for one batch of a command: the first writes its row of the audit, the others add to it. Returns which row.
    pub(crate) async fn write_batch(
        &self,
        connection: &mut PooledConnection,
        act: &Act<'_>,
        row: Option<i64>,
        affected: u64,
    ) -> Result<i64> {
        if let Some(row) = row {
            let values = params! { "row" => row, "affected" => affected };
            connection
                .change(act.what, self.texts.audit_add.first(), values)
                .await?;
            return Ok(row);
        }
        let values = params! {
            "who" => act.who,
            "action" => act.action.as_str(),
            "filter" => &act.filter,
            "affected" => affected,
        };
        connection.change(act.what, self.texts.audit.at(0), values).await?;
        let written = connection.rows(act.what, self.texts.audit.at(1), ()).await?;
        number(act.what, only(act.what, &written)?, 0)
    }
}

/// Rows that begin with lane, seq, delivery and id, as the next statement takes them; `None` when there are none.
pub(super) fn row_refs(what: &str, rows: &[Row]) -> Result<Option<String>> {
    let row_refs = rows.iter().map(|row| {
        Ok(json!([
            number(what, row, 0)?,
            number(what, row, 1)?,
            text(what, row, 2)?,
            text(what, row, 3)?
        ]))
    });
    let row_refs: Vec<Json> = row_refs.collect::<Result<_>>()?;
    Ok((!row_refs.is_empty()).then(|| Json::from(row_refs).to_string()))
}
