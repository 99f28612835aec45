//! Pauses of topics and sinks.

use sendoff::Result;
use sendoff::store::{Action, Pausable, PauseView};
use tokio_postgres::types::Type;

use super::change::Act;
use super::filter::like;
use crate::decode::column;
use crate::error::odd_answer;
use crate::pipeline::Param;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        let act = act("the pause could not be set", Action::Pause, what, who);
        let (kind, name) = what.kind_and_name();
        let params: Vec<Param<'_>> = vec![(&kind, Type::TEXT), (&name, Type::TEXT), (&who, Type::TEXT)];
        let (lent, set) = self.begin_act(&act, &self.texts.pause, params).await?;
        Ok(self.end_act(lent, &act, set.len() as u64).await? > 0)
    }

    pub(crate) async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let act = act("the pause could not be ended", Action::Resume, what, who);
        let (kind, name) = what.kind_and_name();
        let topics = topics(name);
        let params: Vec<Param<'_>> = vec![(&kind, Type::TEXT), (&name, Type::TEXT), (&topics, Type::TEXT)];
        let (lent, ended) = self.begin_act(&act, &self.texts.resume, params).await?;
        Ok(self.end_act(lent, &act, ended.len() as u64).await? > 0)
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
