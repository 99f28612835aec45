//! The health of the outbox, without counting its tables.

use std::time::Duration;

use mysql_async::Value;
use sendoff::Result;
use sendoff::store::{LaneHead, StoreHealth};

use crate::decode::{count, lane, number, number_or_null, to_time};
use crate::operate::only;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn health(&self) -> Result<StoreHealth> {
        let what = "the health of the outbox could not be read";
        let heads = self.operate_pool.rows(what, self.texts.lane_heads.first(), ()).await?;
        let heads = heads.iter().map(|row| {
            Ok(LaneHead {
                lane: lane(what, row, 0)?,
                seq: number(what, row, 1)?,
                age: Duration::from_micros(count(number(what, row, 2)?)),
                held: number(what, row, 3)? != 0,
            })
        });
        let heads = heads.collect::<Result<_>>()?;
        let bound: Vec<(&str, Value)> = vec![("bound", StoreHealth::BOUND.into())];
        let rows = self.operate_pool.rows(what, self.texts.health.first(), bound).await?;
        let row = only(what, &rows)?;
        let counted = |at| number(what, row, at).map(count);
        Ok(StoreHealth {
            now: to_time(number(what, row, 0)?),
            ready: counted(1)?,
            waiting: counted(2)?,
            dead: counted(3)?,
            oldest_due: number_or_null(what, row, 4)?.map(|micros| Duration::from_micros(count(micros))),
            heads,
            // A CHECK keeps them out.
            stray: None,
        })
    }
}
