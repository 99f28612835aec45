//! Room: clean. What has served its time goes, some at a time, so that nobody waits long for a lock.

use mysql_async::{Row, Value, params};
use sendoff::Result;
use sendoff::store::{Action, CleanCount, Cleaned, Command, Windows};
use serde_json::Value as Json;

use crate::conflict::transact;
use crate::decode::{count, limit, micros, number};
use crate::operate::{Act, only};
use crate::pool::Lent;
use crate::store::Inner;
use crate::texts::Text;

const WHAT: &str = "what is old could not be cleaned up";

impl Inner {
    /// On a relay's schedule, by the windows of the config and of the tables. Another relay may be at it: this one passes
    /// over what that one has locked.
    pub(crate) async fn clean(&self, most: usize) -> Result<u64> {
        let (age, dead_age) = (
            self.config.retention.map(micros),
            self.config.dead_retention.map(micros),
        );
        let values = params! { "age" => age, "dead_age" => dead_age };
        let needed = self
            .operate_pool
            .rows(WHAT, self.texts.clean_needed.first(), values)
            .await?;
        if number(WHAT, only(WHAT, &needed)?, 0)? == 0 {
            return Ok(0);
        }
        let windows = [
            (&self.texts.clean_dedup, Some(Age::Setting)),
            (&self.texts.clean_inbox, Some(Age::Setting)),
            (&self.texts.clean_delivered, age.map(Age::Micros)),
            (&self.texts.clean_items, age.map(Age::Micros)),
            (&self.texts.clean_dead, dead_age.map(Age::Micros)),
        ];
        transact!(self.operate_pool, WHAT, lent => delete_all(&mut lent, &windows, limit(most)).await.map(count))
    }

    pub(crate) async fn clean_count(&self, windows: &Windows) -> Result<CleanCount> {
        let what = "what is old could not be counted";
        let values = params! {
            "delivered" => windows.delivered.map(micros),
            "dead" => windows.dead.map(micros),
            "dedup" => windows.dedup,
            "inbox" => windows.inbox.map(micros),
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
    pub(crate) async fn clean_up(&self, windows: &Windows, most: usize, command: &mut Command) -> Result<Cleaned> {
        let who = command.who().to_owned();
        let act = Act {
            what: WHAT,
            action: Action::CleanUp,
            filter: windows.asked().to_string(),
            who: &who,
        };
        let (most, row) = (limit(most), command.row());
        let (deleted, row) = transact!(self.operate_pool, WHAT, lent => {
            self.clean_as_asked(&mut lent, windows, most, &act, row).await
        })?;
        command.is_noted(row);
        Ok(Cleaned {
            deleted: count(deleted),
            more: deleted >= most,
        })
    }

    async fn clean_as_asked(
        &self,
        lent: &mut Lent,
        windows: &Windows,
        most: i64,
        act: &Act<'_>,
        row: Option<i64>,
    ) -> Result<(i64, i64)> {
        let [delivered, dead, inbox] =
            [windows.delivered, windows.dead, windows.inbox].map(|window| window.map(micros));
        let asked = [
            (&self.texts.clean_delivered, delivered.map(Age::Micros)),
            (&self.texts.clean_items, delivered.map(Age::Micros)),
            (&self.texts.clean_dead, dead.map(Age::Micros)),
            (&self.texts.clean_dedup, windows.dedup.then_some(Age::Setting)),
            (&self.texts.clean_inbox, inbox.map(Age::Micros)),
        ];
        let deleted = delete_all(lent, &asked, most).await?;
        let row = self.write_batch(lent, act, row, count(deleted)).await?;
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
async fn delete_all(lent: &mut Lent, asked: &[(&Text, Option<Age>)], most: i64) -> Result<i64> {
    let mut deleted = 0;
    for (sql, age) in asked {
        let (Some(age), left @ 1..) = (age, most.saturating_sub(deleted)) else {
            continue;
        };
        let age = match age {
            Age::Micros(micros) => Some(*micros),
            Age::Setting => None,
        };
        let old = lent
            .rows(WHAT, sql.at(0), params! { "age" => age, "limit" => left })
            .await?;
        if !old.is_empty() {
            let rows: Json = old.iter().map(values_of).collect();
            let gone = lent.change(WHAT, sql.at(1), params! { "rows" => rows.to_string() });
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
