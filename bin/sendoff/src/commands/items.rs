//! `sendoff items`: what workers gave up.

use std::fmt::Write as _;
use std::io;

use sendoff::{Error, ErrorKind, Uuid};
use sendoff_operate::{ItemAct, ItemListView, ItemView, Progress};

use crate::commands::bulk::{BulkArgs, Change};
use crate::commands::ls::Page;
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::output::printable;
use crate::payload;
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
            let written = filter.written([])?;
            let (operator, items) = session.operators().await?;
            let filter = operator.filter(&written).await?;
            list(&items.list(&filter, page.limit, page.offset).await?, session)?;
        }
        Command::Show { id } => show(&session.operators().await?.1.show(id).await?, session)?,
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

const RETRY: Change = Change {
    things: "failed items",
    done: "retried",
    would: "would_retry",
    question: |count| format!("Bring back {count} failed items?"),
    none,
};

const DISCARD: Change = Change {
    things: "failed items",
    done: "discarded",
    would: "would_discard",
    question: |count| format!("Delete {count} failed items for good?"),
    none,
};

fn none() -> Error {
    Error::new(ErrorKind::NotFound, "none of these is a failed item")
        .because("it was retried already, or never failed")
        .next_step("look with `sendoff items ls`")
}

async fn act(args: BulkArgs, act: ItemAct, session: &Session) -> Done {
    let change = match act {
        ItemAct::Retry => &RETRY,
        ItemAct::Discard => &DISCARD,
    };
    let written = args.written(change)?;
    let (operator, items) = session.operators().await?;
    let filter = operator.filter(&written).await?;
    let count = items.count(&filter).await?;
    let act = async |progress: Progress<'_>| items.act(act, &filter, progress).await;
    args.run(change, count, session, act).await
}
