//! `sendoff items`: what workers have to do, have in hand, and gave up.

use std::fmt::Write as _;
use std::io;

use sendoff::store::ItemState;
use sendoff::{Error, ErrorKind, Uuid};
use sendoff_operate::{ItemAct, ItemListView, ItemView, Progress};

use crate::commands::bulk::{BulkArgs, Change};
use crate::commands::ls::{Page, seconds};
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::output::{Field, Tone, printable};
use crate::payload;
use crate::session::Session;

/// Look at work items, and bring failed ones back
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List items, oldest first
    Ls {
        /// Only in this state: pending, running, retry, completed or failed
        #[arg(long, value_name = "STATE")]
        state: Option<ItemState>,
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        page: Page,
    },
    /// Show one item
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
        Command::Ls { state, filter, page } => {
            let written = filter.written([])?;
            let (operator, items) = session.operators().await?;
            let filter = operator.filter(&written).await?;
            list(&items.list(state, &filter, page.limit, page.offset).await?, session)?;
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
            Field::toned(item.state.as_str(), tone(item.state)),
            (&item.topic).into(),
            item.key.as_deref().unwrap_or_default().into(),
            item.attempts.into(),
            item.lease_owner.as_deref().unwrap_or_default().into(),
            seconds(until(item).unwrap_or_default()).into(),
            seconds(&item.created_at).into(),
            item.last_error.as_deref().unwrap_or_default().into(),
        ]
    });
    let headings = [
        "id",
        "state",
        "topic",
        "key",
        "attempts",
        "worker",
        "lease end or due",
        "created",
        "error",
    ];
    session.output.table(&headings, rows.collect())?;
    if list.more {
        session.note("there are more: raise --limit, or pass over these with --offset");
    }
    if list.items.is_empty() {
        session.note("no item fits");
    }
    Ok(())
}

/// When something happens to it next, or happened last.
fn until(item: &ItemView) -> Option<&str> {
    let times = [&item.lease_until, &item.due_at, &item.completed_at];
    times.into_iter().find_map(|time| time.as_deref())
}

/// How a state is meant.
fn tone(state: ItemState) -> Tone {
    match state {
        ItemState::Pending | ItemState::Running => Tone::Plain,
        ItemState::Retry => Tone::Warning,
        ItemState::Completed => Tone::Good,
        ItemState::Failed => Tone::Bad,
    }
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
        ("worker", item.lease_owner.as_deref()),
        ("lease ends", item.lease_until.as_deref()),
        ("due", item.due_at.as_deref()),
        ("created", Some(&item.created_at)),
        ("completed", item.completed_at.as_deref()),
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
        .next_step("look with `sendoff items ls --state failed`")
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
