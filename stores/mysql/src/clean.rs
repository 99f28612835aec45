//! Clean: deletes rows that are past their retention, in small batches, so that no other transaction waits long for a
//! lock.

use mysql_async::{Row, Value, params};
use sendoff::Result;
use sendoff::store::{Action, CleanCount, Cleaned, Command, Retention, Text};
use serde_json::Value as Json;

use crate::conflict::transact;
use crate::decode::{count, limit, micros, number};
use crate::operate::{Act, only};
use crate::pool::PooledConnection;
use crate::store::Inner;

const WHAT: &str = "expired rows could not be deleted";

impl Inner {
    /// On a relay's schedule, by the windows of the config and of the tables. Another relay may be at it: this one passes
    /// over what that one has locked.
    pub(crate) async fn clean(&self, most: usize) -> Result<u64> {
        let (age, dead_age) = (
            self.config.settings.retention.map(micros),
            self.config.settings.dead_retention.map(micros),
        );
        let values = params! { "age" => age, "dead_age" => dead_age };
        let needed = self
            .operate_pool
            .rows(WHAT, self.texts.clean_needed.first(), values)
            .await?;
        if number(WHAT, only(WHAT, &needed)?, 0)? == 0 {
            return Ok(0);
        }
        let retention = [
            (&self.texts.clean_dedup, Some(Age::Setting)),
            (&self.texts.clean_inbox, Some(Age::Setting)),
            (&self.texts.clean_delivered, age.map(Age::Micros)),
            (&self.texts.clean_jobs, age.map(Age::Micros)),
            (&self.texts.clean_dead, dead_age.map(Age::Micros)),
        ];
        transact!(self.operate_pool, WHAT, connection => delete_all(&mut connection, &retention, limit(most)).await.map(count))
    }

    pub(crate) async fn clean_count(&self, retention: &Retention) -> Result<CleanCount> {
        let what = "expired rows could not be counted";
        let values = params! {
            "delivered" => retention.delivered.map(micros),
            "dead" => retention.dead.map(micros),
            "dedup" => retention.dedup,
            "inbox" => retention.inbox.map(micros),
        };
        let found = self
            .operate_pool
            .rows(what, self.texts.clean_count.first(), values)
            .await?;
        let number = |at| number(what, only(what, &found)?, at).map(count);
        Ok(CleanCount {
            old: number(0)?,
            all: number(1)?,
        })
    }

    /// By an operator, by windows of their own.
    pub(crate) async fn clean_up(&self, retention: &Retention, most: usize, command: &mut Command) -> Result<Cleaned> {
        let who = command.who().to_owned();
        let act = Act {
            what: WHAT,
            action: Action::CleanUp,
            filter: retention.asked().to_string(),
            who: &who,
        };
        let (most, row) = (limit(most), command.row());
        let (deleted, row) = transact!(self.operate_pool, WHAT, connection => {
            self.clean_as_asked(&mut connection, retention, most, &act, row).await
        })?;
        command.is_noted(row);
        Ok(Cleaned {
            deleted: count(deleted),
            more: deleted >= most,
        })
    }

    async fn clean_as_asked(
        &self,
        connection: &mut PooledConnection,
        retention: &Retention,
        most: i64,
        act: &Act<'_>,
        row: Option<i64>,
    ) -> Result<(i64, i64)> {
        let [delivered, dead, inbox] =
            [retention.delivered, retention.dead, retention.inbox].map(|window| window.map(micros));
        let asked = [
            (&self.texts.clean_delivered, delivered.map(Age::Micros)),
            (&self.texts.clean_jobs, delivered.map(Age::Micros)),
            (&self.texts.clean_dead, dead.map(Age::Micros)),
            (&self.texts.clean_dedup, retention.dedup.then_some(Age::Setting)),
            (&self.texts.clean_inbox, inbox.map(Age::Micros)),
        ];
        let deleted = delete_all(connection, &asked, most).await?;
        let row = self.write_batch(connection, act, row, count(deleted)).await?;
        Ok((deleted, row))
    }
}

/// How old rows are that go.
#[derive(Clone, Copy)]
enum Age {
    Micros(i64),
    /// As old as their own column or a setting says.
    Setting,
}

/// Deletes up to `most` rows: each text finds some that are old enough, and deletes them. `None`: nothing is.
async fn delete_all(connection: &mut PooledConnection, asked: &[(&Text, Option<Age>)], most: i64) -> Result<i64> {
    let mut deleted = 0;
    for (sql, age) in asked {
        let (Some(age), left @ 1..) = (age, most.saturating_sub(deleted)) else {
            continue;
        };
        let age = match age {
            Age::Micros(micros) => Some(*micros),
            Age::Setting => None,
        };
        let old = connection
            .rows(WHAT, sql.at(0), params! { "age" => age, "limit" => left })
            .await?;
        if !old.is_empty() {
            let rows: Json = old.iter().map(values_of).collect();
            let gone = connection.change(WHAT, sql.at(1), params! { "rows" => rows.to_string() });
            deleted += i64::try_from(gone.await?).unwrap_or(i64::MAX);
        }
    }
    Ok(deleted)
}

/// The whole row as the next statement takes it.
fn values_of(row: &Row) -> Json {
    let values = (0..row.len()).map(|at| match row.as_ref(at) {
        Some(Value::Int(number)) => Json::from(*number),
        Some(Value::UInt(number)) => Json::from(*number),
        Some(Value::Bytes(text)) => Json::from(String::from_utf8_lossy(text)),
        _ => Json::Null,
    });
    values.collect()
}
