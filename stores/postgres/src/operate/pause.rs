//! Pauses of topics and sinks.

use sendoff::Result;
use sendoff::store::{Pausable, PauseView};
use tokio_postgres::types::Type;

use super::only;
use crate::decode::{column, count};
use crate::error::odd_answer;
use crate::pipeline::{Param, Statement};
use crate::store::Inner;

/// Keeps the end of a pause and settlements that make messages wait for it apart. Whoever ends a pause makes those due that
/// wait: what a settlement writes at the same moment would not be among them. A statement of its own, so that the one behind it
/// sees what was committed while the lock was waited for.
pub(crate) struct PauseLock(String);

impl PauseLock {
    /// For settlements, any number at once.
    pub(crate) fn shared(&self) -> Statement<'_> {
        self.taken_by("SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))")
    }

    /// For the end of a pause.
    fn exclusive(&self) -> Statement<'_> {
        self.taken_by("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
    }

    fn taken_by<'a>(&'a self, sql: &'a str) -> Statement<'a> {
        let params = vec![(&self.0 as _, Type::TEXT)];
        Statement { sql, params }
    }
}

impl Inner {
    pub(crate) async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        let (kind, name) = what.kind_and_name();
        let params: [Param<'_>; 2] = [(&kind, Type::TEXT), (&name, Type::TEXT)];
        let (what, sql) = ("the pause could not be set", &self.texts.pause);
        Ok(self.act_at_once(what, sql, &params, who).await? > 0)
    }

    pub(crate) async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let (kind, name) = what.kind_and_name();
        let params: Vec<Param<'_>> = vec![(&who, Type::TEXT), (&kind, Type::TEXT), (&name, Type::TEXT)];
        let (lock, sql) = (self.pause_lock(), self.texts.resume.as_str());
        let what = "the pause could not be ended";
        let connection = self.operate_pool.get().await?;
        let found = connection
            .run_all(what, &[lock.exclusive(), Statement { sql, params }])
            .await?;
        connection.give_back();
        let ended = found.last().map_or(&[][..], Vec::as_slice);
        Ok(count(column(what, only(what, ended)?, 1)?) > 0)
    }

    /// See [`PauseLock`].
    pub(crate) fn pause_lock(&self) -> PauseLock {
        PauseLock(format!("sendoff pause {}", self.config.names))
    }

    pub(crate) async fn pauses(&self) -> Result<Vec<PauseView>> {
        let what = "pauses could not be listed";
        let rows = self.operate_pool.run(what, &self.texts.pauses, &[]).await?;
        let view = |row| {
            let name = column(what, row, 1)?;
            Ok(PauseView {
                what: match column::<&str>(what, row, 0)? {
                    "topic" => Pausable::Topic(name),
                    "sink" => Pausable::Sink(name),
                    other => return Err(odd_answer(what, format!("{other:?} cannot be paused"))),
                },
                since: column(what, row, 2)?,
                by: column(what, row, 3)?,
            })
        };
        rows.iter().map(view).collect()
    }
}
