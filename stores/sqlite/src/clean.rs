//! Room: clean. What has served its time goes, some at a time, so that nobody waits long for the write lock.

use rusqlite::{Connection, params};
use sendoff::Result;

use crate::clock::micros;
use crate::lease::write;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn clean(&self, limit: usize) -> Result<u64> {
        let sql = self.sql.clone();
        let retention = self.config.retention.map(micros);
        let work = move |connection: &mut Connection| {
            let needed: bool = connection
                .prepare_cached(sql.clean.at(0))?
                .query_row([retention], |row| row.get(0))?;
            if !needed {
                return Ok(0);
            }
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let tx = write(connection)?;
            let keys = tx.prepare_cached(sql.clean.at(1))?.execute([limit])?;
            let left = limit.saturating_sub(i64::try_from(keys).unwrap_or(i64::MAX));
            let delivered = tx.prepare_cached(sql.clean.at(2))?.execute(params![retention, left])?;
            tx.commit()?;
            Ok(u64::try_from(keys + delivered).unwrap_or(u64::MAX))
        };
        self.operate.call("what is old could not be cleaned up", work).await
    }
}
