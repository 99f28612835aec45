//! Bulk commands: selection, confirmation and progress.

use sendoff::{Error, ErrorKind, Result, Uuid};
use sendoff_operate::{Operator, Progress, Selected, WrittenFilter};
use serde_json::json;

use crate::commands::confirm::confirmed;
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::progress::Counting;
use crate::session::Session;

/// What a bulk command acts on: ids, everything that a filter matches, or all.
#[derive(Debug, clap::Args)]
pub(crate) struct BulkArgs {
    /// Ids to select
    ids: Vec<Uuid>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Select the deliveries of this group of `sendoff failures`
    #[arg(long, value_name = "ID")]
    group: Option<String>,
    /// Select everything (instead of ids or filters)
    #[arg(long, conflicts_with_all = ["ids", "group", "FilterArgs"])]
    all: bool,
    /// Only count what is selected; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// The texts of a bulk command.
pub(crate) struct Change {
    /// What it acts on: `dead letters`.
    pub(crate) things: &'static str,
    /// What was done to them, and the JSON key of their count: `retried`.
    pub(crate) done: &'static str,
    /// The JSON key of their count in a dry run: `would_retry`.
    pub(crate) would: &'static str,
    /// The confirmation question.
    pub(crate) question: fn(u64) -> String,
    /// The error when ids were given and none of them matches.
    pub(crate) none: fn() -> Error,
}

impl BulkArgs {
    /// The filter of the command line.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when nothing is selected, and for an invalid name or value.
    pub(crate) fn written(&self, change: &Change) -> Result<WrittenFilter> {
        let written = self.filter.written(self.ids.iter().map(|id| format!("id={id}")))?;
        if !written.is_empty() || self.all || self.group.is_some() {
            return Ok(written);
        }
        let Change { things, done, .. } = change;
        Err(Error::new(ErrorKind::Invalid, format!("no {things} are selected"))
            .because(format!("without an id or a filter, all of them would be {done}"))
            .next_step("give ids, --topic, --key, --group, an age or --filter NAME=VALUE, or use --all"))
    }

    /// What the command acts on.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an unknown group, and errors of the database.
    pub(crate) async fn selected(
        &self,
        written: &WrittenFilter,
        operator: &Operator,
        session: &Session,
    ) -> Result<Selected> {
        self.filter.check_sink(session).await?;
        let filter = operator.filter(written).await?;
        operator.selected(filter, self.group.as_deref(), self.all).await
    }

    /// Refuses a group where there are none.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a group was given.
    pub(crate) fn has_no_group(&self, things: &str) -> Result<()> {
        match &self.group {
            None => Ok(()),
            Some(_) => Err(
                Error::new(ErrorKind::Invalid, format!("--group cannot be used with {things}"))
                    .because("groups contain dead letters and deliveries in retry")
                    .next_step("select by error text: --filter error=TEXT"),
            ),
        }
    }

    /// Runs `act` on `count` items, unless this is a dry run or the user declines.
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
