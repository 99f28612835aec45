//! Pausing topics and sinks.

use rusqlite::{Connection, Row, Transaction, params};
use sendoff::Result;
use sendoff::store::{Pausable, PauseView};

use super::filter::glob;
use super::write_audit;
use crate::clock::to_time;
use crate::sql::Sql;
use crate::store::Inner;

impl Inner {
    pub(super) async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        let (what, who) = (what.clone(), who.to_owned());
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let (kind, name) = what.kind_and_name();
            let paused = tx
                .prepare_cached(sql.pause.first())?
                .execute(params![kind, name, who])?
                > 0;
            write_audit(tx, sql, &who, "pause", &as_asked(&what), u64::from(paused))?;
            Ok(paused)
        };
        self.act("the pause could not be noted", act).await
    }

    pub(super) async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let (what, who) = (what.clone(), who.to_owned());
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let (kind, name) = what.kind_and_name();
            let resumed = tx.prepare_cached(sql.resume.at(0))?.execute(params![kind, name])? > 0;
            if let (true, Pausable::Topic(topic)) = (resumed, &what) {
                tx.prepare_cached(sql.resume.at(1))?.execute([glob(topic)])?;
            }
            write_audit(tx, sql, &who, "resume", &as_asked(&what), u64::from(resumed))?;
            Ok(resumed)
        };
        self.act("the pause could not be ended", act).await
    }

    pub(super) async fn pauses(&self) -> Result<Vec<PauseView>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.pauses.first())?;
            let rows = statement.query_map([], view)?;
            rows.collect()
        };
        self.operate.call("what is paused could not be read", work).await
    }

    /// For relays, which ask often: on the connection that they read with.
    pub(crate) async fn paused(&self) -> Result<Vec<(String, String)>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.paused.first())?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        self.read.call("what is paused could not be read", work).await
    }
}

fn as_asked(what: &Pausable) -> String {
    let (kind, name) = what.kind_and_name();
    serde_json::json!({ kind: name }).to_string()
}

fn view(row: &Row<'_>) -> rusqlite::Result<PauseView> {
    let name = row.get(1)?;
    let what = match row.get::<_, String>(0)?.as_str() {
        "sink" => Pausable::Sink(name),
        // The table takes these two words only.
        _ => Pausable::Topic(name),
    };
    Ok(PauseView {
        what,
        since: to_time(row.get(2)?),
        by: row.get(3)?,
    })
}
