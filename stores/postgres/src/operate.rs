//! Room: operate. What an operator sees and does, and what the relay asks about the whole.

use std::time::{Duration, SystemTime};

use sendoff::store::{Backlog, BlockedKey, Filter, Lane, Listing, OwnerId, Status, Stored, Summary};
use sendoff::{Error, ErrorKind, Result, Uuid};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::decode::{column, count, number, smallints};
use crate::error::odd_answer;
use crate::pipeline::{Param, Statement};
use crate::settle::blocked_key;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>> {
        let what = "blocked keys could not be read";
        let lanes = smallints(lanes);
        let rows = self
            .operate_pool
            .run(what, &self.texts.blocked_keys, &[(&lanes, Type::INT2_ARRAY)])
            .await?;
        rows.iter().map(|row| blocked_key(what, row)).collect()
    }

    pub(crate) async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64> {
        let lanes = smallints(lanes);
        let params: [Param<'_>; 2] = [(&owner.0, Type::UUID), (&lanes, Type::INT2_ARRAY)];
        let what = "held messages could not be let go";
        let released = self
            .operate_pool
            .run(what, &self.texts.release_orphans, &params)
            .await?;
        Ok(released.len() as u64)
    }

    pub(crate) async fn backlog(&self) -> Result<Backlog> {
        let what = "the backlog could not be counted";
        let rows = self.operate_pool.run(what, &self.texts.backlog, &[]).await?;
        let row = only(what, &rows)?;
        let number = |at| column::<i64>(what, row, at).map(count);
        Ok(Backlog {
            ready: number(0)?,
            due: number(1)?,
            waiting: number(2)?,
            dead: number(3)?,
        })
    }

    pub(crate) async fn paused(&self) -> Result<Vec<(String, String)>> {
        let what = "pauses could not be read";
        let rows = self.operate_pool.run(what, &self.texts.paused, &[]).await?;
        rows.iter()
            .map(|row| Ok((column(what, row, 0)?, column(what, row, 1)?)))
            .collect()
    }

    pub(crate) async fn list(&self, filter: &Filter, limit: usize, offset: usize) -> Result<Listing> {
        let filter = Columns::new(filter);
        // One more than asked for tells whether there are more.
        let (one_more, offset) = (number(limit).saturating_add(1), number(offset));
        let mut params = filter.params();
        params.push((&one_more, Type::INT8));
        params.push((&offset, Type::INT8));
        let rows = self
            .operate_pool
            .run("messages could not be listed", &self.texts.list, &params)
            .await?;
        let messages = rows.iter().take(limit).map(stored).collect::<Result<_>>()?;
        Ok(Listing {
            messages,
            more: rows.len() > limit,
        })
    }

    pub(crate) async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let rows = self
            .operate_pool
            .run(
                "the message could not be looked up",
                &self.texts.find,
                &[(&id, Type::UUID)],
            )
            .await?;
        rows.iter().map(stored).collect()
    }

    pub(crate) async fn summary(&self) -> Result<Summary> {
        let what = "the summary could not be made";
        let rows = self.operate_pool.run(what, &self.texts.summary, &[]).await?;
        let row = only(what, &rows)?;
        let number = |at| column::<i64>(what, row, at).map(count);
        Ok(Summary {
            ready: number(0)?,
            waiting: number(1)?,
            failed: number(2)?,
            dead: number(3)?,
            delivered: number(4)?,
            oldest_ready: column::<Option<i64>>(what, row, 5)?.map(|micros| Duration::from_micros(count(micros))),
        })
    }

    pub(crate) async fn retry_dead(&self, filter: &Filter, who: &str) -> Result<u64> {
        let what = "dead letters could not be retried";
        let text = serde_json::to_string(filter).map_err(|error| {
            Error::new(ErrorKind::Invalid, what)
                .because("the filter does not serialise")
                .with_source(error)
        })?;
        let filter = Columns::new(filter);
        let lent = self.operate_pool.lend().await?;
        let retry = Statement {
            sql: &self.texts.retry_dead,
            params: filter.params(),
        };
        let found = lent.begin(what, &[retry]).await?;
        let moved: i64 = column(what, only(what, found.first().map_or(&[], Vec::as_slice))?, 0)?;
        let audit = Statement {
            sql: &self.texts.audit,
            params: vec![
                (&who, Type::TEXT),
                (&"retry", Type::TEXT),
                (&text, Type::TEXT),
                (&moved, Type::INT8),
            ],
        };
        lent.commit(what, &[audit]).await?;
        lent.give_back();
        Ok(count(moved))
    }
}

/// A filter as the statements take it.
struct Columns<'a> {
    filter: &'a Filter,
    ids: Option<&'a [Uuid]>,
    status: Option<&'static str>,
    topic: Option<String>,
    payload: Option<&'a [u8]>,
}

impl<'a> Columns<'a> {
    fn new(filter: &'a Filter) -> Self {
        Self {
            filter,
            ids: Some(filter.ids.as_slice()).filter(|ids| !ids.is_empty()),
            status: filter.status.map(Status::as_str),
            topic: filter.topic.as_deref().map(like),
            payload: filter.payload.as_deref().map(str::as_bytes),
        }
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.ids, Type::UUID_ARRAY),
            (&self.status, Type::TEXT),
            (&self.topic, Type::TEXT),
            (&self.filter.key, Type::TEXT),
            (&self.filter.aggregate_type, Type::TEXT),
            (&self.filter.aggregate_id, Type::TEXT),
            (&self.filter.idempotency_key, Type::TEXT),
            (&self.filter.leg, Type::TEXT),
            (&self.filter.error, Type::TEXT),
            (&self.payload, Type::BYTEA),
            (&self.filter.created_from, Type::TIMESTAMPTZ),
            (&self.filter.created_until, Type::TIMESTAMPTZ),
        ]
    }
}

/// `*` for any text, and nothing else is special.
fn like(topic: &str) -> String {
    let mut pattern = String::with_capacity(topic.len() + 4);
    for c in topic.chars() {
        match c {
            '*' => pattern.push('%'),
            '%' | '_' | '\\' => pattern.extend(['\\', c]),
            _ => pattern.push(c),
        }
    }
    pattern
}

fn only<'a>(what: &str, rows: &'a [Row]) -> Result<&'a Row> {
    rows.first().ok_or_else(|| odd_answer(what, "the answer is empty"))
}

fn stored(row: &Row) -> Result<Stored> {
    let what = "a message could not be shown";
    let status = match column::<&str>(what, row, 0)? {
        "pending" => Status::Pending,
        "retry" => Status::Retry,
        "delivered" => Status::Delivered,
        "dead" => Status::Dead,
        other => return Err(odd_answer(what, format!("it has the unknown status {other:?}"))),
    };
    Ok(Stored {
        status,
        id: column(what, row, 1)?,
        topic: column(what, row, 2)?,
        leg: column(what, row, 3)?,
        key: column(what, row, 4)?,
        lane: column::<i16>(what, row, 5)?.into(),
        seq: column(what, row, 6)?,
        aggregate_type: column(what, row, 7)?,
        aggregate_id: column(what, row, 8)?,
        schema_version: column::<Option<i32>>(what, row, 9)?.map(Into::into),
        idempotency_key: column(what, row, 10)?,
        content_type: column(what, row, 11)?,
        headers: column(what, row, 12)?,
        payload: column(what, row, 13)?,
        priority: column::<i16>(what, row, 14)?.into(),
        attempts: column::<i32>(what, row, 15)?.into(),
        max_attempts: column::<Option<i16>>(what, row, 16)?.map(Into::into),
        last_error: column(what, row, 17)?,
        detail: column(what, row, 18)?,
        history: column(what, row, 19)?,
        created_at: column::<SystemTime>(what, row, 20)?,
        due_at: column(what, row, 21)?,
        expires_at: column(what, row, 22)?,
        ended_at: column(what, row, 23)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_star_is_special_in_a_topic() {
        assert_eq!(like("order.*"), "order.%");
        assert_eq!(like("50%_a\\b"), "50\\%\\_a\\\\b");
    }
}
