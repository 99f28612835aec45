//! `sendoff dead`: the dead letters.

use sendoff::{Error, ErrorKind, Uuid};
use sendoff_operate::{ListBy, Progress};

use crate::commands::bulk::{BulkArgs, Change};
use crate::commands::ls::{self, Page};
use crate::commands::show;
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::session::Session;

/// List, show, retry and discard dead letters
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List dead letters, those that died last first
    Ls {
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        page: Page,
    },
    /// Show one dead letter
    Show {
        /// Id of the message
        id: Uuid,
    },
    /// Retry dead letters: due now; attempts reset to 0; order per key is kept
    Retry(BulkArgs),
    /// Delete dead letters permanently; messages blocked behind them become due
    Discard(BulkArgs),
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    match args.command {
        Command::Ls { filter, page } => {
            let written = filter.written([])?;
            let operator = session.operator().await?;
            filter.check_sink(session).await?;
            let list = operator.dead_list(&page.request(written, ListBy::Ended)).await?;
            return ls::print(&list, &operator, &page, session).await;
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
    question: |count| format!("Retry {count} dead letters?"),
    none,
};

const DISCARD: Change = Change {
    things: "dead letters",
    done: "discarded",
    would: "would_discard",
    question: |count| format!("Delete {count} dead letters permanently?"),
    none,
};

fn none() -> Error {
    Error::new(ErrorKind::NotFound, "none of these is a dead letter")
        .because("these messages were already retried or discarded, or never died")
        .next_step("check with `sendoff dead ls` or `sendoff show ID`")
}

async fn retry(args: BulkArgs, session: &Session) -> Done {
    let written = args.written(&RETRY)?;
    let operator = session.operator().await?;
    let selected = args.selected(&written, &operator, session).await?;
    let count = selected.dead_count().await?;
    let act = async |progress: Progress<'_>| selected.dead_retry(progress).await;
    args.run(&RETRY, count, session, act).await
}

async fn discard(args: BulkArgs, session: &Session) -> Done {
    let written = args.written(&DISCARD)?;
    let operator = session.operator().await?;
    let selected = args.selected(&written, &operator, session).await?;
    let count = selected.dead_count().await?;
    let act = async |progress: Progress<'_>| selected.dead_discard(progress).await;
    args.run(&DISCARD, count, session, act).await
}
