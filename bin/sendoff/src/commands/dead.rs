//! `sendoff dead`: the dead letters.

use sendoff::store::Filter;
use sendoff::{Error, ErrorKind, Uuid};
use serde_json::json;

use crate::commands::bulk::BulkArgs;
use crate::commands::confirm::confirmed;
use crate::commands::ls::{self, Page};
use crate::commands::show;
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::progress::Counting;
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
            let filter = filter.filter([])?;
            let list = session
                .operator()
                .await?
                .dead_list(&filter, page.limit, page.offset)
                .await?;
            ls::print(&list, session)?;
        }
        Command::Show { id } => show::print(&session.operator().await?.dead_show(id).await?, session)?,
        Command::Retry(args) => return change(args, Change::Retry, session).await,
        Command::Discard(args) => return change(args, Change::Discard, session).await,
    }
    Ok(Exit::Ok)
}

/// What is done with dead letters.
#[derive(Clone, Copy)]
enum Change {
    Retry,
    Discard,
}

impl Change {
    fn verb(self) -> &'static str {
        match self {
            Self::Retry => "retried",
            Self::Discard => "discarded",
        }
    }

    fn would(self) -> &'static str {
        match self {
            Self::Retry => "would_retry",
            Self::Discard => "would_discard",
        }
    }

    fn question(self, count: u64) -> String {
        match self {
            Self::Retry => format!("Bring back {count} dead letters?"),
            Self::Discard => format!("Delete {count} dead letters for good?"),
        }
    }
}

async fn change(args: BulkArgs, change: Change, session: &Session) -> Done {
    let verb = change.verb();
    let filter = args.filter.filter(args.ids.iter().map(|id| format!("id={id}")))?;
    if filter == Filter::default() && !args.all {
        return Err(Error::new(ErrorKind::Invalid, "no dead letters are named")
            .because(format!("without an id or a filter all of them would be {verb}"))
            .next_step("give ids, --topic, --key or --filter NAME=VALUE, or say --all")
            .into());
    }
    let operator = session.operator().await?;
    let count = operator.dead_count(&filter).await?;
    if args.dry_run {
        if session.output.json {
            session.output.json(&json!({change.would(): count}))?;
        } else {
            session.output.line(&format!("{count} would be {verb}"))?;
        }
        return Ok(Exit::Ok);
    }
    if !args.yes && !confirmed(&change.question(count))? {
        session.note("nothing was changed");
        return Ok(Exit::Failure);
    }
    let mut counting = Counting::start(session, verb, Some(count));
    let progress = &mut |done| counting.set(done);
    let done = match change {
        Change::Retry if args.all => operator.dead_retry_all(progress).await?.retried,
        Change::Retry => operator.dead_retry(&filter, progress).await?.retried,
        Change::Discard => operator.dead_discard(&filter, progress).await?,
    };
    counting.finish();
    if session.output.json {
        session.output.json(&json!({verb: done}))?;
    } else {
        session.output.line(&format!("{done} {verb}"))?;
    }
    if done == 0 && !args.ids.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "none of these is a dead letter")
            .because("it was retried already, or never died")
            .next_step("look with `sendoff dead ls` or `sendoff show ID`")
            .into());
    }
    Ok(Exit::Ok)
}
