//! `sendoff dead`: the dead letters.

use sendoff::{Error, ErrorKind, Uuid};
use sendoff_operate::Progress;

use crate::commands::bulk::{BulkArgs, Change};
use crate::commands::ls::{self, Page};
use crate::commands::show;
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::session::Session;

/// Look at dead letters and bring them back
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List dead letters, oldest first
    Ls {
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        page: Page,
    },
    /// Show one dead letter
    Show {
        /// Its id
        id: Uuid,
    },
    /// Bring dead letters back: due at once, with all their attempts, in order per key
    Retry(BulkArgs),
    /// Delete dead letters for good; messages that they blocked go on
    Discard(BulkArgs),
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    match args.command {
        Command::Ls { filter, page } => {
            let written = filter.written([])?;
            let operator = session.operator().await?;
            let filter = operator.filter(&written).await?;
            ls::print(&operator.dead_list(&filter, page.limit, page.offset).await?, session)?;
        }
        Command::Show { id } => show::print(&session.operator().await?.dead_show(id).await?, session)?,
        Command::Retry(args) => return retry(args, session).await,
        Command::Discard(args) => return discard(args, session).await,
    }
    Ok(Exit::Ok)
}

const RETRY: Change = Change {
    things: "dead letters",
    done: "retried",
    would: "would_retry",
    question: |count| format!("Bring back {count} dead letters?"),
    none,
};

const DISCARD: Change = Change {
    things: "dead letters",
    done: "discarded",
    would: "would_discard",
    question: |count| format!("Delete {count} dead letters for good?"),
    none,
};

fn none() -> Error {
    Error::new(ErrorKind::NotFound, "none of these is a dead letter")
        .because("it was retried already, or never died")
        .next_step("look with `sendoff dead ls` or `sendoff show ID`")
}

async fn retry(args: BulkArgs, session: &Session) -> Done {
    let written = args.written(&RETRY)?;
    let operator = session.operator().await?;
    let filter = operator.filter(&written).await?;
    let count = operator.dead_count(&filter).await?;
    let act = async |progress: Progress<'_>| {
        let retried = if written.is_empty() {
            operator.dead_retry_all(progress).await?
        } else {
            operator.dead_retry(&filter, progress).await?
        };
        Ok(retried.retried)
    };
    args.run(&RETRY, count, session, act).await
}

async fn discard(args: BulkArgs, session: &Session) -> Done {
    let written = args.written(&DISCARD)?;
    let operator = session.operator().await?;
    let filter = operator.filter(&written).await?;
    let count = operator.dead_count(&filter).await?;
    let act = async |progress: Progress<'_>| operator.dead_discard(&filter, progress).await;
    args.run(&DISCARD, count, session, act).await
}
