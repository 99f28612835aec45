//! `sendoff ls`: lists messages.

use std::io;

use sendoff::store::Status;
use sendoff_operate::{ListBy, ListOrder, ListRequest, MessageView, Operator, PageView};

use crate::age::Times;
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::output::{Field, Tone};
use crate::session::Session;
use crate::table::Column;

/// List messages, newest first, with one row per delivery
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A page reads a limited number of rows. It may have fewer rows than --limit although there are \
                  more; then the note and `next` say how to continue."
)]
pub(crate) struct Args {
    /// Only deliveries with this status: pending, scheduled, retry, blocked, deferred, delivered or dead
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    page: Page,
    /// Only count the deliveries that match, up to 10,000
    #[arg(long, conflicts_with = "Page")]
    count: bool,
}

/// One page of a list.
#[derive(Debug, clap::Args)]
pub(crate) struct Page {
    #[command(flatten)]
    next: NextPage,
    /// Sort newest first (the default)
    #[arg(long)]
    newest: bool,
    /// Sort oldest first
    #[arg(long, conflicts_with = "newest")]
    oldest: bool,
    /// Sort by time of creation, or by the time of death or delivery
    #[arg(long, value_enum, value_name = "TIME")]
    by: Option<By>,
}

/// Which page, and how much of its rows.
#[derive(Debug, clap::Args)]
pub(crate) struct NextPage {
    /// Maximum number of rows on the page, up to 1000
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Show the next page: the `next` from the JSON, or from the note below the previous page
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Include payloads, cut to 4 KiB (only with --json)
    #[arg(long)]
    pub(crate) payload: bool,
    /// Print exact times instead of ages
    #[arg(long)]
    pub(crate) times: bool,
}

/// What a list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    Created,
    Ended,
}

impl Page {
    /// The page of a list with this filter; `by` is what it is sorted by unless a flag says otherwise.
    pub(crate) fn request(&self, filter: sendoff_operate::WrittenFilter, by: ListBy) -> ListRequest {
        ListRequest {
            filter,
            order: ListOrder {
                by: match self.by {
                    Some(By::Created) => ListBy::Created,
                    Some(By::Ended) => ListBy::Ended,
                    None => by,
                },
                oldest_first: self.oldest,
            },
            limit: self.next.limit,
            after: self.next.after.clone(),
            payload: self.next.payload,
        }
    }
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let written = args
        .filter
        .written(args.status.map(|status| format!("status={status}")))?;
    let operator = session.operator().await?;
    args.filter.check_sink(session).await?;
    if args.count {
        let count = operator.count_some(&operator.filter(&written).await?).await?;
        if session.output.json {
            session.output.json(&count)?;
        } else {
            session.output.line(&count.to_string())?;
        }
        return Ok(Exit::Ok);
    }
    let by = if written.has_time_of_death() {
        ListBy::Ended
    } else {
        ListBy::Created
    };
    let list = operator.list(&args.page.request(written, by)).await?;
    print(&list, &operator, &args.page, session).await
}

/// Prints a list of messages.
pub(crate) async fn print(list: &PageView<MessageView>, operator: &Operator, page: &Page, session: &Session) -> Done {
    if session.output.json {
        session.output.json(list)?;
        return Ok(Exit::Ok);
    }
    let times = Times::of(&session.output, page.next.times, operator).await?;
    table(&list.items, &times, session)?;
    after(list, "messages", session);
    Ok(Exit::Ok)
}

/// Says how to continue.
pub(crate) fn after<T>(list: &PageView<T>, things: &str, session: &Session) {
    let scanned = list.scanned.unwrap_or_default();
    match (&list.next, &list.looked_back_to) {
        (Some(next), Some(reached)) if list.items.is_empty() => session.note(&format!(
            "no {things} match among {scanned} rows, back to {reached}; continue with --after {next}"
        )),
        (Some(next), _) => session.note(&format!("there are more: continue with --after {next}")),
        (None, _) if list.items.is_empty() => session.note(&format!("no {things} match")),
        (None, _) => {}
    }
}

fn table(messages: &[MessageView], times: &Times, session: &Session) -> io::Result<()> {
    let (created, ended) = if times.for_people() {
        ("age", "when")
    } else {
        ("created", "due or ended")
    };
    let columns = [
        Column::whole("id"),
        Column::whole("status"),
        Column::cut("topic"),
        Column::cut("key").spare(4),
        Column::cut("aggregate").spare(1),
        Column::cut("sink").spare(5),
        Column::whole("attempts").spare(2),
        Column::cut("detail").spare(6),
        Column::whole(created),
        Column::whole(ended).spare(3),
        Column::cut("error"),
    ];
    let rows = messages.iter().map(|message| row(message, times));
    session.output.table(&columns, rows.collect())
}

fn row(message: &MessageView, times: &Times) -> Vec<Field> {
    let delivery = message.deliveries.first();
    let text = |text: Option<&String>| Field::from(text.map_or("", String::as_str));
    let aggregate = match (&message.aggregate_type, &message.aggregate_id) {
        (Some(kind), Some(id)) => format!("{kind}:{id}"),
        (one, other) => one.as_ref().or(other.as_ref()).cloned().unwrap_or_default(),
    };
    // On a terminal a key that is made of the aggregate, and no attempts, say nothing.
    let key = message
        .key
        .as_ref()
        .filter(|key| !times.for_people() || **key != aggregate);
    let attempts = delivery.map_or(0, |delivery| delivery.attempts);
    let attempts = if times.for_people() && attempts == 0 {
        String::new()
    } else {
        attempts.to_string()
    };
    let ended = delivery.and_then(|delivery| delivery.due_at.as_deref().or(delivery.ended_at.as_deref()));
    // The status says it already.
    let detail = delivery
        .and_then(|delivery| delivery.detail.as_ref())
        .filter(|detail| !times.for_people() || *detail != message.status.as_str());
    vec![
        message
            .id
            .map_or_else(|| Field::toned("unreadable", Tone::Bad), Field::from),
        Field::toned(message.status.as_str(), tone(message.status)),
        Field::from(&message.topic),
        text(key),
        aggregate.into(),
        text(delivery.and_then(|delivery| delivery.sink.as_ref())),
        attempts.into(),
        text(detail),
        times.shown(&message.created_at).into(),
        ended.map_or_else(String::new, |at| times.shown(at)).into(),
        Field::toned(
            delivery
                .and_then(|delivery| delivery.last_error.as_deref())
                .unwrap_or_default(),
            Tone::Dim,
        ),
    ]
}

/// The tone of a status.
pub(crate) fn tone(status: Status) -> Tone {
    match status {
        Status::Retry | Status::Blocked | Status::Deferred => Tone::Warning,
        Status::Delivered => Tone::Good,
        Status::Dead => Tone::Bad,
        // Pending and scheduled.
        _ => Tone::Plain,
    }
}
