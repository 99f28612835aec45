//! `sendoff retry` and `sendoff reset`: waiting messages become due at once.

use sendoff::store::Filter;
use sendoff::{Error, ErrorKind, Uuid};
use serde_json::json;

use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::session::Session;

/// Which waiting messages.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Their ids
    ids: Vec<Uuid>,
    #[command(flatten)]
    filter: FilterArgs,
    /// All of them
    #[arg(long, conflicts_with_all = ["ids", "topic", "key", "pairs"])]
    all: bool,
    /// Only count those that fit
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(args: Args, reset: bool, session: &Session) -> Done {
    let filter = args.filter.filter(args.ids.iter().map(|id| format!("id={id}")))?;
    if filter == Filter::default() && !args.all {
        return Err(Error::new(ErrorKind::Invalid, "no messages are named")
            .because("without an id or a filter all that wait would become due")
            .next_step("give ids, --topic, --key or --filter NAME=VALUE, or say --all")
            .into());
    }
    let operator = session.operator().await?;
    let (name, count) = if args.dry_run {
        ("would_be_due", operator.count(&filter).await?)
    } else {
        ("due", operator.hasten(&filter, reset).await?)
    };
    if session.output.json {
        session.output.json(&json!({name: count}))?;
    } else {
        session.output.line(&format!("{count} {}", name.replace('_', " ")))?;
    }
    Ok(Exit::Ok)
}
