//! Changing many at once: which, asking first, telling how far it is.

use sendoff::{Error, ErrorKind, Result, Uuid};
use sendoff_operate::{Progress, WrittenFilter};
use serde_json::json;

use crate::commands::confirm::confirmed;
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::progress::Counting;
use crate::session::Session;

/// Those that an action is about: some by their ids, those that a filter finds, or all.
#[derive(Debug, clap::Args)]
pub(crate) struct BulkArgs {
    /// Their ids
    ids: Vec<Uuid>,
    #[command(flatten)]
    filter: FilterArgs,
    /// All of them
    #[arg(long, conflicts_with_all = ["ids", "FilterArgs"])]
    all: bool,
    /// Only count
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// A change, in words.
pub(crate) struct Change {
    /// What it is about: `dead letters`.
    pub(crate) things: &'static str,
    /// What becomes of them, and the name of their number in JSON: `retried`.
    pub(crate) done: &'static str,
    /// The name of their number in JSON when they are only counted: `would_retry`.
    pub(crate) would: &'static str,
    /// What is asked first.
    pub(crate) question: fn(u64) -> String,
    /// What is told when ids were given and none of them fits.
    pub(crate) none: fn() -> Error,
}

impl BulkArgs {
    /// The filter, unless nothing is named.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] then, and for a name or value that cannot be used.
    pub(crate) fn written(&self, change: &Change) -> Result<WrittenFilter> {
        let written = self.filter.written(self.ids.iter().map(|id| format!("id={id}")))?;
        if !written.is_empty() || self.all {
            return Ok(written);
        }
        let Change { things, done, .. } = change;
        Err(Error::new(ErrorKind::Invalid, format!("no {things} are named"))
            .because(format!("without an id or a filter all of them would be {done}"))
            .next_step("give ids, --topic, --key, an age or --filter NAME=VALUE, or say --all"))
    }

    /// Does it to so many, unless they are only to be counted or somebody says no.
    pub(crate) async fn run(
        &self,
        change: &Change,
        count: u64,
        session: &Session,
        act: impl AsyncFnOnce(Progress<'_>) -> Result<u64>,
    ) -> Done {
        let Change { done, would, .. } = change;
        if self.dry_run {
            if session.output.json {
                session.output.json(&json!({*would: count}))?;
            } else {
                session.output.line(&format!("{count} would be {done}"))?;
            }
            return Ok(Exit::Ok);
        }
        if !self.yes && !confirmed(&(change.question)(count))? {
            session.note("nothing was changed");
            return Ok(Exit::Failure);
        }
        let mut counting = Counting::start(session, done, Some(count));
        let changed = act(&mut |so_far| counting.set(so_far)).await;
        counting.finish();
        let changed = changed?;
        if session.output.json {
            session.output.json(&json!({*done: changed}))?;
        } else {
            session.output.line(&format!("{changed} {done}"))?;
        }
        if changed == 0 && !self.ids.is_empty() {
            return Err((change.none)().into());
        }
        Ok(Exit::Ok)
    }
}
