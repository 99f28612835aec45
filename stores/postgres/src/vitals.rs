//! How the outbox is, without counting it.

use std::time::{Duration, UNIX_EPOCH};

use sendoff::Result;
use sendoff::store::{LaneHead, Vitals};
use tokio_postgres::types::Type;

use crate::decode::{column, count};
use crate::operate::only;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn vitals(&self) -> Result<Vitals> {
        let what = "it could not be told how the outbox is";
        let heads = self.operate_pool.run(what, &self.texts.lane_heads, &[]).await?;
        let heads = heads.iter().map(|row| {
            Ok(LaneHead {
                lane: column::<i16>(what, row, 0)?.unsigned_abs(),
                seq: column(what, row, 1)?,
                age: Duration::from_micros(count(column(what, row, 2)?)),
                held: column(what, row, 3)?,
            })
        });
        let heads = heads.collect::<Result<_>>()?;
        let bound = i64::from(Vitals::BOUND);
        let params = [(&bound as _, Type::INT8)];
        let rows = self.operate_pool.run(what, &self.texts.vitals, &params).await?;
        let row = only(what, &rows)?;
        let number = |at| column::<i64>(what, row, at).map(count);
        Ok(Vitals {
            now: UNIX_EPOCH + Duration::from_micros(number(0)?),
            ready: number(1)?,
            waiting: number(2)?,
            dead: number(3)?,
            oldest_due: column::<Option<i64>>(what, row, 4)?.map(|micros| Duration::from_micros(count(micros))),
            heads,
        })
    }
}
