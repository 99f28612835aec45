//! `sendoff items`: what workers gave up.

use std::fmt::Write as _;
use std::io;

use sendoff::store::Filter;
use sendoff::{Error, ErrorKind, Uuid};
use sendoff_operate::{ItemAct, ItemListView, ItemView};
use serde_json::json;

use crate::commands::bulk::BulkArgs;
use crate::commands::confirm::confirmed;
use crate::commands::ls::Page;
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::output::printable;
use crate::payload;
use crate::progress::Counting;
use crate::session::Session;

/// Look at failed work items and bring them back
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List failed items, oldest first
    Ls {
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        page: Page,
    },
    /// Show one failed item
    Show {
        /// Its id
        id: Uuid,
    },
    /// Bring failed items back: due at once, with all their attempts
    Retry(BulkArgs),
    /// Delete failed items for good
    Discard(BulkArgs),
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    match args.command {
        Command::Ls { filter, page } => {
            let filter = filter.filter([])?;
            let operator = session.item_operator().await?;
            list(&operator.list(&filter, page.limit, page.offset).await?, session)?;
        }
        Command::Show { id } => show(&session.item_operator().await?.show(id).await?, session)?,
        Command::Retry(args) => return act(args, ItemAct::Retry, session).await,
        Command::Discard(args) => return act(args, ItemAct::Discard, session).await,
    }
    Ok(Exit::Ok)
}

fn list(list: &ItemListView, session: &Session) -> io::Result<()> {
    if session.output.json {
        return session.output.json(list);
    }
    let rows = list.items.iter().map(|item| {
        vec![
            item.id.map_or_else(|| "unreadable".into(), Into::into),
            (&item.topic).into(),
            item.key.as_deref().unwrap_or_default().into(),
            item.attempts.into(),
            item.created_at.as_str().into(),
            item.last_error.as_deref().unwrap_or_default().into(),
        ]
    });
    let headings = ["id", "topic", "key", "attempts", "created", "error"];
    session.output.table(&headings, rows.collect())?;
    if list.more {
        session.note("there are more: raise --limit, or pass over these with --offset");
    }
    if list.items.is_empty() {
        session.note("no failed item fits");
    }
    Ok(())
}

fn show(item: &ItemView, session: &Session) -> io::Result<()> {
    if session.output.json {
        return session.output.json(item);
    }
    let id = item.id.map_or_else(|| "unreadable".to_owned(), |id| id.to_string());
    let most = item.max_attempts.map(|most| most.to_string());
    let attempts = item.attempts.to_string();
    let payload = format!("{} bytes of {}", item.payload_bytes, item.content_type);
    let lines = [
        ("item", Some(id.as_str())),
        ("state", Some(item.state.as_str())),
        ("topic", Some(&item.topic)),
        ("key", item.key.as_deref()),
        ("aggregate type", item.aggregate_type.as_deref()),
        ("aggregate id", item.aggregate_id.as_deref()),
        ("idempotency key", item.idempotency_key.as_deref()),
        ("attempts", Some(&attempts)),
        ("most attempts", most.as_deref()),
        ("last error", item.last_error.as_deref()),
        ("created", Some(&item.created_at)),
        ("expires", item.expires_at.as_deref()),
        ("payload", Some(&payload)),
    ];
    let paint = session.output.paint();
    let mut text = String::new();
    for (name, value) in lines.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        let _ = writeln!(text, "{} {}", paint.dim(&format!("{name:<16}")), printable(value));
    }
    let shown = match (&item.payload, &item.payload_base64) {
        (Some(payload), _) => payload::text(payload, sendoff::envelope::is_json(&item.content_type)),
        (None, Some(encoded)) => payload::hexdump(encoded),
        (None, None) => String::new(),
    };
    if !shown.is_empty() {
        let _ = write!(text, "\n{shown}");
    }
    session.output.print(&text)
}

async fn act(args: BulkArgs, act: ItemAct, session: &Session) -> Done {
    let (verb, would, question) = match act {
        ItemAct::Retry => ("retried", "would_retry", "Bring back"),
        ItemAct::Discard => ("discarded", "would_discard", "Delete for good"),
    };
    let filter = args.filter.filter(args.ids.iter().map(|id| format!("id={id}")))?;
    if filter == Filter::default() && !args.all {
        return Err(Error::new(ErrorKind::Invalid, "no failed items are named")
            .because(format!("without an id or a filter all of them would be {verb}"))
            .next_step("give ids, --topic, --key or --filter NAME=VALUE, or say --all")
            .into());
    }
    let operator = session.item_operator().await?;
    let count = operator.count(&filter).await?;
    if args.dry_run {
        if session.output.json {
            session.output.json(&json!({would: count}))?;
        } else {
            session.output.line(&format!("{count} would be {verb}"))?;
        }
        return Ok(Exit::Ok);
    }
    if !args.yes && !confirmed(&format!("{question} {count} failed items?"))? {
        session.note("nothing was changed");
        return Ok(Exit::Failure);
    }
    let mut counting = Counting::start(session, verb, Some(count));
    let done = operator.act(act, &filter, &mut |done| counting.set(done)).await?;
    counting.finish();
    if session.output.json {
        session.output.json(&json!({verb: done}))?;
    } else {
        session.output.line(&format!("{done} {verb}"))?;
    }
    if done == 0 && !args.ids.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "none of these is a failed item")
            .because("it was retried already, or never failed")
            .next_step("look with `sendoff items ls`")
            .into());
    }
    Ok(Exit::Ok)
}
