//! Which of many an action is about.

use sendoff::Uuid;

use crate::filter::FilterArgs;

/// Those that an action is about: some by their ids, those that a filter finds, or all.
#[derive(Debug, clap::Args)]
pub(crate) struct BulkArgs {
    /// Their ids
    pub(crate) ids: Vec<Uuid>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// All of them
    #[arg(long, conflicts_with_all = ["ids", "topic", "key", "pairs"])]
    pub(crate) all: bool,
    /// Only count
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}
