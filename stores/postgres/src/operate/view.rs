//! What operators see in addition to messages: keys, lanes and the audit.

use sendoff::Result;
use sendoff::store::{AuditView, Filter, KeyView, LaneView};
use tokio_postgres::types::Type;

use super::filter::Columns;
use super::only;
use crate::decode::{column, count, number};
use crate::store::Inner;

impl Inner {
    pub(crate) async fn count(&self, filter: &Filter) -> Result<u64> {
        let what = "messages could not be counted";
        let filter = Columns::new(filter);
        let rows = self
            .operate_pool
            .run(what, &self.texts.count, &filter.with_dead())
            .await?;
        column::<i64>(what, only(what, &rows)?, 0).map(count)
    }

    pub(crate) async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        let what = "keys could not be listed";
        let limit = number(limit);
        let params = [(&limit as _, Type::INT8)];
        let rows = self.operate_pool.run(what, &self.texts.keys, &params).await?;
        let view = |row| {
            Ok(KeyView {
                key: column(what, row, 0)?,
                sink: column(what, row, 1)?,
                lane: column::<i16>(what, row, 2)?.into(),
                blocked: count(column(what, row, 3)?),
                head: column(what, row, 4)?,
                state: column(what, row, 5)?,
                due_at: column(what, row, 6)?,
                last_error: column(what, row, 7)?,
            })
        };
        rows.iter().map(view).collect()
    }

    pub(crate) async fn published_routes(&self) -> Result<Vec<String>> {
        let what = "relays could not be listed";
        let rows = self.operate_pool.run(what, &self.texts.relays, &[]).await?;
        rows.iter().map(|row| column(what, row, 2)).collect()
    }

    pub(crate) async fn lane_views(&self) -> Result<Vec<LaneView>> {
        let what = "lanes could not be listed";
        let rows = self.operate_pool.run(what, &self.texts.lane_views, &[]).await?;
        let view = |row| {
            Ok(LaneView {
                lane: column::<i16>(what, row, 0)?.into(),
                epoch: column(what, row, 1)?,
                owner: column(what, row, 2)?,
                relay: column(what, row, 3)?,
                until: column(what, row, 4)?,
                crashes: column::<i32>(what, row, 5)?.into(),
                ready: count(column(what, row, 6)?),
            })
        };
        rows.iter().map(view).collect()
    }

    pub(crate) async fn audits(&self, limit: usize) -> Result<Vec<AuditView>> {
        let what = "the audit could not be read";
        let limit = number(limit);
        let params = [(&limit as _, Type::INT8)];
        let rows = self.operate_pool.run(what, &self.texts.audits, &params).await?;
        let view = |row| {
            Ok(AuditView {
                at: column(what, row, 0)?,
                login: column(what, row, 1)?,
                who: column(what, row, 2)?,
                action: column(what, row, 3)?,
                filter: column(what, row, 4)?,
                affected: count(column(what, row, 5)?),
            })
        };
        rows.iter().map(view).collect()
    }
}
