//! The health of the outbox, without counting its tables.

use std::time::Duration;

use rusqlite::{Connection, Row};
use sendoff::Result;
use sendoff::store::{LaneHead, StoreHealth};

use crate::clock::to_time;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn health(&self) -> Result<StoreHealth> {
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
            let heads = statement.query_map([StoreHealth::BOUND], head)?;
            let heads = heads.collect::<rusqlite::Result<Vec<_>>>()?;
            let mut statement = connection.prepare_cached(sql.health.first())?;
            statement.query_row([StoreHealth::BOUND], |row| {
                let number = |at| {
                    row.get::<_, i64>(at)
                        .map(|number| u64::try_from(number).unwrap_or_default())
                };
                Ok(StoreHealth {
                    now: to_time(row.get(0)?),
                    ready: number(1)?,
                    waiting: number(2)?,
                    dead: number(3)?,
                    oldest_due: row.get::<_, Option<i64>>(4)?.map(micros),
                    heads,
                    // The table keeps them out.
                    stray: None,
                })
            })
        };
        self.operate
            .call("the health of the outbox could not be read", work)
            .await
    }
}

fn micros(number: i64) -> Duration {
    Duration::from_micros(u64::try_from(number).unwrap_or_default())
}
