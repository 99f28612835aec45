//! The queue of a key: which of its rows are due, and which have to wait again.
//!
//! Of the rows of one lane, key and delivery that block (retry, held, down), those with a due time come first in the order of
//! `seq`. Settling keeps it so.

use mysql_async::params;
use sendoff::Result;
use sendoff::store::{BlockedKey, Lane, OwnerId};
use serde_json::{Value, json};

use super::rows::Rows;
use super::{WHAT, carry_out};
use crate::conflict::transact;
use crate::decode::{blocked_key, hex, list, number, text};
use crate::pool::PooledConnection;
use crate::store::Inner;

impl Inner {
    /// The next held rows of these keys (lane, key, delivery) become due.
    pub(crate) async fn follow_on(&self, connection: &mut PooledConnection, what: &str, gone: &[Value]) -> Result<u64> {
        if gone.is_empty() {
            return Ok(0);
        }
        let sql = &self.texts.follow_on;
        let rows = Value::from(gone).to_string();
        let open = connection.rows(what, sql.at(0), params! { "rows" => rows }).await?;
        let mut became_due = 0;
        for row in &open {
            let values = params! {
                "lane" => number(what, row, 0)?,
                "key" => text(what, row, 1)?,
                "sink" => text(what, row, 2)?,
                "until" => number(what, row, 3)?,
            };
            became_due += connection.change(what, sql.at(1), values).await?;
        }
        Ok(became_due)
    }

    /// Blocked rows become due if nothing blocks them.
    pub(super) async fn let_go(&self, connection: &mut PooledConnection, held: Rows) -> Result<u64> {
        if held.is_empty() {
            return Ok(0);
        }
        let sql = &self.texts.wait_again;
        let rows = Value::from(held).to_string();
        let free = connection.rows(WHAT, sql.at(1), params! { "rows" => rows }).await?;
        let free: Rows = free
            .iter()
            .map(|row| {
                Ok(json!([
                    number(WHAT, row, 0)?,
                    number(WHAT, row, 1)?,
                    text(WHAT, row, 2)?,
                    text(WHAT, row, 3)?
                ]))
            })
            .collect::<Result<_>>()?;
        carry_out(connection, sql.at(2), free).await
    }

    /// Of these keys, those of which nothing waits or blocks any more.
    pub(super) async fn keys_left(&self, connection: &mut PooledConnection, gone: Rows) -> Result<Vec<BlockedKey>> {
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        let rows = Value::from(gone).to_string();
        let left = connection
            .rows(WHAT, self.texts.key_left.first(), params! { "rows" => rows })
            .await?;
        keys_in(WHAT, &left)
    }

    pub(crate) async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>> {
        let what = "blocked keys could not be read";
        let sql = self.texts.blocked_keys.first().replace("{lanes}", &list(lanes));
        keys_in(what, &self.operate_pool.rows(what, &sql, ()).await?)
    }

    pub(crate) async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64> {
        let what = "blocked messages could not be released";
        let sql = |lanes: &[Lane]| self.texts.release_orphans.first().replace("{lanes}", &list(lanes));
        // There are hardly ever any: looking takes no lock.
        if self.operate_pool.rows(what, &sql(lanes), ()).await?.is_empty() {
            return Ok(0);
        }
        transact!(self.settle_pool, owner, what, connection => {
            match self.held_lanes(&mut connection, what, owner).await {
                Ok(held) => {
                    let owned: Vec<Lane> = lanes.iter().copied().filter(|lane| held.contains_key(lane)).collect();
                    self.release_found(&mut connection, what, &sql(&owned)).await
                }
                Err(error) => Err(error),
            }
        })
    }

    async fn release_found(&self, connection: &mut PooledConnection, what: &str, sql: &str) -> Result<u64> {
        let orphans = keys_in(what, &connection.rows(what, sql, ()).await?)?;
        let rows: Rows = orphans
            .iter()
            .map(|key| json!([key.lane, hex(&key.key), hex(&key.sink)]))
            .collect();
        self.follow_on(connection, what, &rows).await
    }
}

fn keys_in(what: &str, rows: &[mysql_async::Row]) -> Result<Vec<BlockedKey>> {
    let keys = rows.iter().map(|row| blocked_key(what, row));
    Ok(keys.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
