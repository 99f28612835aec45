//! What relays and workers that are gone left behind.

use std::time::Duration;

use sendoff::Result;
use sendoff::store::{Action, Reaped};
use tokio_postgres::types::Type;

use super::change::Act;
use crate::decode::micros;
use crate::pipeline::Param;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn reap_gone(&self, stale_after: Duration, who: &str) -> Result<Reaped> {
        let act = Act {
            what: "what relays and workers left behind could not be freed",
            action: Action::Reap,
            filter: serde_json::json!({"stale_after_seconds": stale_after.as_secs_f64()}).to_string(),
            who,
        };
        // A settlement that outlived its relay would keep the relay from being evicted.
        let freed = self.evict().await?;
        let (lent, lanes) = self.begin_act(&act, &self.texts.evict, Vec::new()).await?;
        let params: [Param<'_>; 1] = [(&micros(stale_after), Type::INT8)];
        let items = lent.go_on(act.what, &self.texts.reap_items, &params).await?;
        let (lanes, items) = (freed + lanes.len() as u64, items.len() as u64);
        self.end_act(lent, &act, lanes + items).await?;
        Ok(Reaped { lanes, items })
    }
}
