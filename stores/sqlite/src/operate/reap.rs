//! Frees lanes and jobs of relays and workers that are gone.

use std::time::Duration;

use rusqlite::Transaction;
use sendoff::Result;
use sendoff::store::{Action, Reaped};
use serde_json::json;

use super::audit::write_audit;
use crate::clock::micros;
use crate::lease::strike_off;
use crate::sql::Sql;
use crate::store::Inner;

impl Inner {
    pub(super) async fn reap_gone(&self, stale_after: Duration, who: &str) -> Result<Reaped> {
        let asked = json!({"stale_after_seconds": stale_after.as_secs_f64()}).to_string();
        let (stale_after, who) = (micros(stale_after), who.to_owned());
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let lanes = strike_off(tx, sql)?;
            let jobs = tx.prepare_cached(sql.reap_jobs.first())?.execute([stale_after])? as u64;
            write_audit(tx, sql, &who, Action::Reap, &asked, lanes + jobs)?;
            Ok(Reaped { lanes, jobs })
        };
        let what = "lanes and jobs of stopped relays and workers could not be freed";
        self.act(what, act).await
    }
}
