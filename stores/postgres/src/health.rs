//! The health of the outbox, without counting its tables.

use std::time::{Duration, UNIX_EPOCH};

use sendoff::Result;
use sendoff::store::{Lane, LaneHead, StoreHealth, Stray};
use tokio_postgres::types::Type;

use crate::decode::{column, count};
use crate::operate::only;
use crate::store::{Inner, LANES};

impl Inner {
    pub(crate) async fn health(&self) -> Result<StoreHealth> {
        let what = "the health of the outbox could not be read";
        let (mut heads, mut stray) = (Vec::new(), None);
        for row in &self.operate_pool.run(what, &self.texts.lane_heads, &[]).await? {
            let (lane, seq) = (column::<i16>(what, row, 0)?, column(what, row, 1)?);
            let age = Duration::from_micros(count(column(what, row, 2)?));
            match Lane::try_from(lane) {
                Ok(lane) if lane < LANES && seq > 0 => heads.push(LaneHead {
                    lane,
                    seq,
                    age,
                    held: column(what, row, 3)?,
                }),
                // Readers begin behind number 0.
                _ => {
                    let lane = lane.into();
                    stray = Some(Stray { lane, seq, age });
                }
            }
        }
        let bound = i64::from(StoreHealth::BOUND);
        let params = [(&bound as _, Type::INT8)];
        let rows = self.operate_pool.run(what, &self.texts.health, &params).await?;
        let row = only(what, &rows)?;
        let number = |at| column::<i64>(what, row, at).map(count);
        Ok(StoreHealth {
            now: UNIX_EPOCH + Duration::from_micros(number(0)?),
            ready: number(1)?,
            waiting: number(2)?,
            dead: number(3)?,
            oldest_due: column::<Option<i64>>(what, row, 4)?.map(|micros| Duration::from_micros(count(micros))),
            heads,
            stray,
        })
    }
}
