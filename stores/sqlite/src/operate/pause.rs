//! Pauses of topics and sinks.

use rusqlite::{Connection, Row, Transaction, params};
use sendoff::store::{Action, Pausable, PauseView};
use sendoff::{Pattern, Result};

use super::audit::write_audit;
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
            write_audit(tx, sql, &who, Action::Pause, &as_asked(&what), u64::from(paused))?;
            Ok(paused)
        };
        self.act("the pause could not be set", act).await
    }

    pub(super) async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let (what, who) = (what.clone(), who.to_owned());
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let (kind, name) = what.kind_and_name();
            let resumed = tx.prepare_cached(sql.resume.at(0))?.execute(params![kind, name])? > 0;
            if let (true, Pausable::Topic(topic)) = (resumed, &what) {
                make_due(tx, sql, topic)?;
            }
            write_audit(tx, sql, &who, Action::Resume, &as_asked(&what), u64::from(resumed))?;
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
        self.operate.call("pauses could not be read", work).await
    }

    /// For relays, which ask often: on the connection that they read with.
    pub(crate) async fn paused(&self) -> Result<Vec<(String, String)>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| paused(connection, &sql);
        self.read.call("pauses could not be read", work).await
    }
}

/// Kinds and names of what is paused.
pub(crate) fn paused(connection: &Connection, sql: &Sql) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare_cached(sql.paused.first())?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Messages that waited because of a pause of these topics go on at once.
fn make_due(tx: &Transaction<'_>, sql: &Sql, paused: &str) -> rusqlite::Result<()> {
    let pattern: Option<Pattern> = paused.parse().ok();
    let mut waiting = tx.prepare_cached(sql.resume.at(1))?;
    // A topic that is not UTF-8 is no message's, so no relay has made it wait.
    let topics = waiting.query_map([], |row| Ok(row.get_ref(0)?.as_str().ok().map(str::to_owned)))?;
    let topics: Vec<Option<String>> = topics.collect::<rusqlite::Result<_>>()?;
    let mut wake = tx.prepare_cached(sql.resume.at(2))?;
    for topic in topics.into_iter().flatten() {
        if topic == paused || pattern.as_ref().is_some_and(|pattern| pattern.matches(&topic)) {
            wake.execute([topic])?;
        }
    }
    Ok(())
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
