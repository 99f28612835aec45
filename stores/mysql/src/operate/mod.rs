//! Room: operate. What an operator sees and does, and what the relay asks about the whole.

mod change;
mod filter;
mod hasten;
mod pause;
mod reap;
mod view;

use std::time::{Duration, SystemTime};

use mysql_async::{Row, params};
use sendoff::store::{Backlog, Filter, Listing, Status, Stored, Summary};
use sendoff::{Result, Uuid};

pub(crate) use self::change::Act;
use self::filter::values;
use crate::decode::{count, limit, lossy_or_null, number, number_or_null, text, text_or_null, time_or_null, to_time};
use crate::error::odd_answer;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn backlog(&self) -> Result<Backlog> {
        let what = "the backlog could not be counted";
        let rows = self.operate_pool.rows(what, self.texts.backlog.first(), ()).await?;
        let row = only(what, &rows)?;
        let number = |at| number(what, row, at).map(count);
        Ok(Backlog {
            ready: number(0)?,
            due: number(1)?,
            waiting: number(2)?,
            dead: number(3)?,
        })
    }

    pub(crate) async fn list(&self, filter: &Filter, most: usize, offset: usize) -> Result<Listing> {
        let what = "messages could not be listed";
        let mut values = values(filter);
        // One more than asked for tells whether there are more.
        values.push(("limit", limit(most).saturating_add(1).into()));
        values.push(("offset", limit(offset).into()));
        let rows = self.operate_pool.rows(what, self.texts.list.first(), values).await?;
        let messages = rows.iter().take(most).map(shown).collect::<Result<_>>()?;
        Ok(Listing {
            messages,
            more: rows.len() > most,
        })
    }

    pub(crate) async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let what = "the message could not be looked up";
        let values = params! { "id" => id.to_string() };
        let rows = self.operate_pool.rows(what, self.texts.find.first(), values).await?;
        rows.iter().map(shown).collect()
    }

    pub(crate) async fn now(&self) -> Result<SystemTime> {
        let what = "the database's time could not be read";
        let rows = self.operate_pool.rows(what, self.texts.now.first(), ()).await?;
        number(what, only(what, &rows)?, 0).map(to_time)
    }

    pub(crate) async fn summary(&self) -> Result<Summary> {
        let what = "the summary could not be made";
        let rows = self.operate_pool.rows(what, self.texts.summary.first(), ()).await?;
        let row = only(what, &rows)?;
        let number = |at| number(what, row, at).map(count);
        let age = |at| -> Result<Option<Duration>> {
            let micros = number_or_null(what, row, at)?;
            Ok(micros.map(|micros| Duration::from_micros(count(micros))))
        };
        Ok(Summary {
            ready: number(0)?,
            waiting: number(1)?,
            failed: number(2)?,
            dead: number(3)?,
            delivered: number(4)?,
            oldest_ready: age(5)?,
            oldest_pending: age(5)?.max(age(6)?),
        })
    }
}

pub(crate) fn only<'a>(what: &str, rows: &'a [Row]) -> Result<&'a Row> {
    rows.first().ok_or_else(|| odd_answer(what, "the answer is empty"))
}

/// A row of `list.sql` or `find.sql`: the beginning of its payload comes with it, and how long that is.
fn shown(row: &Row) -> Result<Stored> {
    let payload_bytes = count(number("a message could not be shown", row, 24)?);
    Ok(Stored {
        payload_bytes,
        ..stored(row)?
    })
}

/// Whatever is in the row is shown: an operator has to see what cannot be read.
/// A row of `list.sql`, `find.sql` or `list_items.sql`, whose first columns are the same.
pub(crate) fn stored(row: &Row) -> Result<Stored> {
    let what = "a message could not be shown";
    let status = match text(what, row, 0)?.as_str() {
        "pending" => Status::Pending,
        "retry" => Status::Retry,
        "delivered" => Status::Delivered,
        "dead" => Status::Dead,
        other => return Err(odd_answer(what, format!("it has the unknown status {other:?}"))),
    };
    let payload = match row.as_ref(13) {
        Some(mysql_async::Value::Bytes(bytes)) => bytes.clone(),
        _ => Vec::new(),
    };
    Ok(Stored {
        status,
        id: text_or_null(what, row, 1)?.and_then(|id| Uuid::parse_str(&id).ok()),
        topic: lossy_or_null(row, 2).unwrap_or_default(),
        leg: lossy_or_null(row, 3).unwrap_or_default(),
        key: lossy_or_null(row, 4),
        lane: number(what, row, 5)?,
        seq: number(what, row, 6)?,
        aggregate_type: lossy_or_null(row, 7),
        aggregate_id: lossy_or_null(row, 8),
        schema_version: number_or_null(what, row, 9)?,
        idempotency_key: lossy_or_null(row, 10),
        content_type: lossy_or_null(row, 11),
        headers: lossy_or_null(row, 12),
        payload_bytes: payload.len() as u64,
        payload,
        priority: number(what, row, 14)?,
        attempts: number(what, row, 15)?,
        max_attempts: number_or_null(what, row, 16)?,
        last_error: lossy_or_null(row, 17),
        detail: lossy_or_null(row, 18),
        history: lossy_or_null(row, 19),
        created_at: time_or_null(what, row, 20)?.unwrap_or(std::time::UNIX_EPOCH),
        due_at: time_or_null(what, row, 21)?,
        expires_at: time_or_null(what, row, 22)?,
        ended_at: time_or_null(what, row, 23)?,
    })
}
