//! Lanes and the relays that hold them.

use rusqlite::{Connection, Row};
use sendoff::Result;
use sendoff::store::LaneView;

use super::look::count;
use crate::clock::to_time;
use crate::store::Inner;

impl Inner {
    pub(super) async fn lane_views(&self) -> Result<Vec<LaneView>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.lane_views.first())?;
            let rows = statement.query_map([], view)?;
            rows.collect()
        };
        self.operate.call("lanes could not be listed", work).await
    }

    pub(super) async fn published_routes(&self) -> Result<Vec<String>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.relays.first())?;
            let rows = statement.query_map([], |row| row.get(2))?;
            rows.collect()
        };
        self.operate.call("relays could not be listed", work).await
    }
}

fn view(row: &Row<'_>) -> rusqlite::Result<LaneView> {
    Ok(LaneView {
        lane: row.get(0)?,
        epoch: row.get(1)?,
        owner: row.get::<_, Option<String>>(2)?.and_then(|owner| owner.parse().ok()),
        relay: row.get(3)?,
        until: row.get::<_, Option<i64>>(4)?.map(to_time),
        crashes: row.get(5)?,
        ready: count(row, 6)?,
    })
}
