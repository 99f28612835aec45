//! `sendoff dead`: the dead letters.

use std::io::{self, IsTerminal, Write};

use sendoff::store::Filter;
use sendoff::{Error, ErrorKind, Result, Uuid};
use sendoff_operate::{MOST_ROWS, Operator, RetryView};
use serde_json::json;

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
    Retry(RetryArgs),
}

#[derive(Debug, clap::Args)]
struct RetryArgs {
    /// Their ids
    ids: Vec<Uuid>,
    #[command(flatten)]
    filter: FilterArgs,
    /// All of them
    #[arg(long, conflicts_with_all = ["ids", "topic", "key", "pairs"])]
    all: bool,
    /// Only count
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
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
        Command::Retry(args) => return retry(args, session).await,
    }
    Ok(Exit::Ok)
}

async fn retry(args: RetryArgs, session: &Session) -> Done {
    let ids = args.ids.iter().map(|id| format!("id={id}"));
    let filter = args.filter.filter(ids)?;
    if filter == Filter::default() && !args.all {
        return Err(Error::new(ErrorKind::Invalid, "no dead letters are named")
            .because("without an id or a filter all of them would be brought back")
            .next_step("give ids, --topic, --key or --filter NAME=VALUE, or say --all")
            .into());
    }
    let operator = session.operator().await?;
    if args.dry_run {
        let count = count(&operator, &filter).await?;
        if session.output.json {
            session.output.json(&json!({"would_retry": count}))?;
        } else {
            session.output.line(&format!("{count} would be retried"))?;
        }
        return Ok(Exit::Ok);
    }
    if !args.yes && io::stdin().is_terminal() && io::stderr().is_terminal() {
        let count = count(&operator, &filter).await?;
        if !confirmed(&format!("Bring back {count} dead letters?"))? {
            session.note("nothing was changed");
            return Ok(Exit::Failure);
        }
    }
    let RetryView { retried } = if args.all {
        operator.dead_retry_all().await?
    } else {
        operator.dead_retry(&filter).await?
    };
    if session.output.json {
        session.output.json(&json!({"retried": retried}))?;
    } else {
        session.output.line(&format!("{retried} retried"))?;
    }
    if retried == 0 && !args.ids.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "none of these is a dead letter")
            .because("it was retried already, or never died")
            .next_step("look with `sendoff dead ls` or `sendoff show ID`")
            .into());
    }
    Ok(Exit::Ok)
}

async fn count(operator: &Operator, filter: &Filter) -> Result<usize> {
    let mut count = 0;
    loop {
        let page = operator.dead_list(filter, MOST_ROWS, count).await?;
        count += page.messages.len();
        if !page.more {
            return Ok(count);
        }
    }
}

fn confirmed(question: &str) -> io::Result<bool> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
