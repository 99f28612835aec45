//! Room: operate. What operators, and relays in passing, see and do.

mod filter;
mod stored;

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use sendoff::store::{Backlog, Filter, Listing, OperateStore, Status, Stored, Summary};
use sendoff::{Result, Uuid};

use crate::SqliteStore;
use crate::lease::write;
use crate::sql::Sql;
use crate::store::Inner;

#[async_trait]
impl OperateStore for SqliteStore {
    async fn list(&self, filter: &Filter, limit: usize, offset: usize) -> Result<Listing> {
        let sql = self.0.sql.clone();
        let mut values = filter::values(filter);
        let number = |number: usize| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        // One more than asked for tells whether there are more.
        values.extend([number(limit.saturating_add(1)), number(offset)]);
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.list.first())?;
            let rows = statement.query_map(params_from_iter(values), stored::stored)?;
            rows.collect::<rusqlite::Result<Vec<Stored>>>()
        };
        let mut messages = self.0.operate.call("messages could not be listed", work).await?;
        let more = messages.len() > limit;
        messages.truncate(limit);
        Ok(Listing { messages, more })
    }

    async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let sql = self.0.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.find.first())?;
            let rows = statement.query_map([filter::spellings(&[id])], stored::stored)?;
            rows.collect()
        };
        self.0.operate.call("the message could not be looked up", work).await
    }

    async fn summary(&self) -> Result<Summary> {
        let sql = self.0.sql.clone();
        let work = move |connection: &mut Connection| {
            connection.prepare_cached(sql.summary.first())?.query_row([], |row| {
                let age = row.get::<_, Option<i64>>(5)?;
                Ok(Summary {
                    ready: count(row, 0)?,
                    waiting: count(row, 1)?,
                    failed: count(row, 2)?,
                    dead: count(row, 3)?,
                    delivered: count(row, 4)?,
                    oldest_ready: age.map(|age| Duration::from_micros(u64::try_from(age).unwrap_or_default())),
                })
            })
        };
        self.0.operate.call("the outbox could not be summed up", work).await
    }

    async fn retry_dead(&self, filter: &Filter, who: &str) -> Result<u64> {
        let (sql, filter, who) = (self.0.sql.clone(), filter.clone(), who.to_owned());
        let work = move |connection: &mut Connection| retry_dead(connection, &sql, &filter, &who);
        self.0.operate.call("dead letters could not be retried", work).await
    }
}

fn retry_dead(connection: &mut Connection, sql: &Sql, filter: &Filter, who: &str) -> rusqlite::Result<u64> {
    let tx = write(connection)?;
    let mut retried = 0_u64;
    if filter.status.is_none_or(|status| status == Status::Dead) {
        let mut fitting = tx.prepare_cached(sql.retry_dead.at(0))?;
        let rows: Vec<i64> = fitting
            .query_map(params_from_iter(filter::values(filter)), |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut bring_back = tx.prepare_cached(sql.retry_dead.at(1))?;
        let mut take_out = tx.prepare_cached(sql.retry_dead.at(2))?;
        for row in rows {
            if bring_back.execute([row])? == 1 {
                take_out.execute([row])?;
                retried += 1;
            }
        }
    }
    let as_asked = serde_json::to_string(filter).unwrap_or_else(|_| "{}".to_owned());
    let affected = i64::try_from(retried).unwrap_or(i64::MAX);
    tx.prepare_cached(sql.audit.first())?
        .execute(params![who, "retry", as_asked, affected])?;
    tx.commit()?;
    Ok(retried)
}

impl Inner {
    pub(crate) async fn backlog(&self) -> Result<Backlog> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            connection.prepare_cached(sql.backlog.first())?.query_row([], |row| {
                Ok(Backlog {
                    ready: count(row, 0)?,
                    due: count(row, 1)?,
                    waiting: count(row, 2)?,
                    dead: count(row, 3)?,
                })
            })
        };
        self.operate.call("the backlog could not be counted", work).await
    }

    pub(crate) async fn paused(&self) -> Result<Vec<(String, String)>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.paused.first())?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        self.read.call("what is paused could not be read", work).await
    }
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
}
