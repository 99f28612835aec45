//! Pauses of topics and sinks.

use mysql_async::params;
use sendoff::Result;
use sendoff::store::{Action, Pausable, PauseView};

use super::change::{Act, row_refs};
use super::filter::like;
use crate::conflict::transact;
use crate::decode::{lossy_or_null, text, time_or_null};
use crate::error::odd_answer;
use crate::pool::PooledConnection;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn paused(&self) -> Result<Vec<(String, String)>> {
        let what = "pauses could not be read";
        let rows = self.operate_pool.rows(what, self.texts.paused.first(), ()).await?;
        rows.iter()
            .map(|row| Ok((text(what, row, 0)?, text(what, row, 1)?)))
            .collect()
    }

    pub(crate) async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        let act = act("the pause could not be set", Action::Pause, what, who);
        let (kind, name) = what.kind_and_name();
        transact!(self.operate_pool, act.what, connection => {
            let values = params! { "kind" => kind, "name" => name, "who" => who };
            match connection.change(act.what, self.texts.pause.first(), values).await {
                Ok(set) => self.write_audit(&mut connection, &act, set).await.map(|set| set > 0),
                Err(error) => Err(error),
            }
        })
    }

    pub(crate) async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let act = act("the pause could not be ended", Action::Resume, what, who);
        transact!(self.operate_pool, act.what, connection => self.end_pause(&mut connection, &act, what).await)
    }

    async fn end_pause(&self, connection: &mut PooledConnection, act: &Act<'_>, what: &Pausable) -> Result<bool> {
        let sql = &self.texts.resume;
        let (kind, name) = what.kind_and_name();
        let ended = connection
            .change(act.what, sql.at(0), params! { "kind" => kind, "name" => name })
            .await?;
        if ended > 0 && kind == "topic" {
            let waiting = connection
                .rows(act.what, sql.at(1), params! { "topics" => topics(name) })
                .await?;
            if let Some(rows) = row_refs(act.what, &waiting)? {
                connection
                    .change(act.what, sql.at(2), params! { "rows" => rows })
                    .await?;
            }
        }
        Ok(self.write_audit(connection, act, ended).await? > 0)
    }

    pub(crate) async fn pauses(&self) -> Result<Vec<PauseView>> {
        let what = "pauses could not be listed";
        let rows = self.operate_pool.rows(what, self.texts.pauses.first(), ()).await?;
        let view = |row| {
            let name = text(what, row, 1)?;
            Ok(PauseView {
                what: match text(what, row, 0)?.as_str() {
                    "topic" => Pausable::Topic(name),
                    "sink" => Pausable::Sink(name),
                    other => return Err(odd_answer(what, format!("{other:?} cannot be paused"))),
                },
                since: time_or_null(what, row, 2)?.ok_or_else(|| odd_answer(what, "a pause has no time"))?,
                by: lossy_or_null(row, 3).unwrap_or_default(),
            })
        };
        rows.iter().map(view).collect()
    }
}

fn act<'a>(what: &'a str, action: Action, paused: &Pausable, who: &'a str) -> Act<'a> {
    let (kind, name) = paused.kind_and_name();
    Act {
        what,
        action,
        filter: serde_json::json!({ kind: name }).to_string(),
        who,
    }
}

/// The topics that a pause may have stopped. A pattern may say more than LIKE can: then all that wait for a pause are
/// looked at again, and those of another pause wait again.
fn topics(pattern: &str) -> String {
    if pattern.contains(['?', '{', '[', '\\']) {
        "%".to_owned()
    } else {
        like(pattern)
    }
}
