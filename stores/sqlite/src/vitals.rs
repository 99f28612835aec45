//! How the outbox is, without counting it.

use std::time::Duration;

use rusqlite::{Connection, Row};
use sendoff::Result;
use sendoff::store::{LaneHead, Vitals};

use crate::clock::to_time;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn vitals(&self) -> Result<Vitals> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let head = |row: &Row<'_>| {
                Ok(LaneHead {
                    lane: row.get(0)?,
                    seq: row.get(1)?,
                    age: micros(row.get(2)?),
                    held: row.get(3)?,
                })
            };
            let mut statement = connection.prepare_cached(sql.lane_heads.first())?;
            let heads = statement.query_map([Vitals::BOUND], head)?;
            let heads = heads.collect::<rusqlite::Result<Vec<_>>>()?;
            let mut statement = connection.prepare_cached(sql.vitals.first())?;
            statement.query_row([Vitals::BOUND], |row| {
                let number = |at| {
                    row.get::<_, i64>(at)
                        .map(|number| u64::try_from(number).unwrap_or_default())
                };
                Ok(Vitals {
                    now: to_time(row.get(0)?),
                    ready: number(1)?,
                    waiting: number(2)?,
                    dead: number(3)?,
                    oldest_due: row.get::<_, Option<i64>>(4)?.map(micros),
                    heads,
                })
            })
        };
        self.operate.call("it could not be told how the outbox is", work).await
    }
}

fn micros(number: i64) -> Duration {
    Duration::from_micros(u64::try_from(number).unwrap_or_default())
}
