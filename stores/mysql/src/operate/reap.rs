//! What relays and workers that are gone left behind.

use std::time::Duration;

use mysql_async::params;
use sendoff::Result;
use sendoff::store::{Action, Reaped};
use serde_json::json;

use super::change::Act;
use crate::conflict::transact;
use crate::decode::micros;
use crate::pool::Lent;
use crate::store::Inner;
use crate::work::change_found;

impl Inner {
    pub(crate) async fn reap_gone(&self, stale_after: Duration, who: &str) -> Result<Reaped> {
        let act = Act {
            what: "what relays and workers left behind could not be freed",
            action: Action::Reap,
            filter: json!({"stale_after_seconds": stale_after.as_secs_f64()}).to_string(),
            who,
        };
        transact!(self.operate_pool, act.what, lent => self.reap_both(&mut lent, &act, stale_after).await)
    }

    async fn reap_both(&self, lent: &mut Lent, act: &Act<'_>, stale_after: Duration) -> Result<Reaped> {
        let lanes = self.strike_off(lent, act.what).await?;
        let age = params! { "age" => micros(stale_after) };
        let items = change_found(lent, act.what, &self.texts.reap_items, age).await?;
        self.write_audit(lent, act, lanes + items).await?;
        Ok(Reaped { lanes, items })
    }
}
