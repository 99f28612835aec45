//! What operators see in addition to messages: keys, lanes and the audit.

use mysql_async::params;
use sendoff::Result;
use sendoff::store::{AuditView, Filter, KeyView, LaneView};

use super::filter::values;
use super::only;
use crate::decode::{count, limit, lossy_or_null, number, text, text_or_null, time_or_null};
use crate::error::odd_answer;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn count(&self, filter: &Filter) -> Result<u64> {
        let what = "messages could not be counted";
        let rows = self
            .operate_pool
            .rows(what, self.texts.count.first(), values(filter))
            .await?;
        number(what, only(what, &rows)?, 0).map(count)
    }

    pub(crate) async fn keys(&self, most: usize) -> Result<Vec<KeyView>> {
        let what = "keys could not be listed";
        let values = params! { "limit" => limit(most) };
        let rows = self.operate_pool.rows(what, self.texts.keys.first(), values).await?;
        let view = |row| {
            Ok(KeyView {
                key: lossy_or_null(row, 0).unwrap_or_default(),
                sink: lossy_or_null(row, 1).unwrap_or_default(),
                lane: number(what, row, 2)?,
                blocked: count(number(what, row, 3)?),
                head: text_or_null(what, row, 4)?.and_then(|id| id.parse().ok()),
                state: text(what, row, 5)?,
                due_at: time_or_null(what, row, 6)?,
                last_error: lossy_or_null(row, 7),
            })
        };
        rows.iter().map(view).collect()
    }

    pub(crate) async fn published_routes(&self) -> Result<Vec<String>> {
        let what = "relays could not be listed";
        let rows = self.operate_pool.rows(what, self.texts.relays.first(), ()).await?;
        rows.iter().map(|row| text(what, row, 2)).collect()
    }

    pub(crate) async fn lane_views(&self) -> Result<Vec<LaneView>> {
        let what = "lanes could not be listed";
        let rows = self.operate_pool.rows(what, self.texts.lane_views.first(), ()).await?;
        let view = |row| {
            Ok(LaneView {
                lane: number(what, row, 0)?,
                epoch: number(what, row, 1)?,
                owner: text_or_null(what, row, 2)?.and_then(|id| id.parse().ok()),
                relay: lossy_or_null(row, 3),
                until: time_or_null(what, row, 4)?,
                crashes: number(what, row, 5)?,
                ready: count(number(what, row, 6)?),
            })
        };
        rows.iter().map(view).collect()
    }

    pub(crate) async fn audits(&self, most: usize) -> Result<Vec<AuditView>> {
        let what = "the audit could not be read";
        let values = params! { "limit" => limit(most) };
        let rows = self.operate_pool.rows(what, self.texts.audits.first(), values).await?;
        let view = |row| {
            Ok(AuditView {
                at: time_or_null(what, row, 0)?.ok_or_else(|| odd_answer(what, "a row has no time"))?,
                login: lossy_or_null(row, 1),
                who: lossy_or_null(row, 2).unwrap_or_default(),
                action: lossy_or_null(row, 3).unwrap_or_default(),
                filter: lossy_or_null(row, 4).unwrap_or_default(),
                affected: count(number(what, row, 5)?),
            })
        };
        rows.iter().map(view).collect()
    }
}
