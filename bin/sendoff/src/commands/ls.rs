//! `sendoff ls`: messages, oldest first.

use std::io;

use sendoff::store::Status;
use sendoff_operate::{ListView, MessageView};

use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::output::{Field, Output, Tone};
use crate::session::Session;

/// List messages, oldest first; one that goes to several sinks once for each
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only with this status: pending, retry, delivered or dead
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    page: Page,
}

/// Which part of a long list.
#[derive(Debug, clap::Args)]
pub(crate) struct Page {
    /// At most so many, up to 1000
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Pass so many over
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) offset: usize,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let written = args
        .filter
        .written(args.status.map(|status| format!("status={status}")))?;
    let operator = session.operator().await?;
    let filter = operator.filter(&written).await?;
    let list = operator.list(&filter, args.page.limit, args.page.offset).await?;
    print(&list, session)?;
    Ok(Exit::Ok)
}

/// Prints a list the way all commands do.
pub(crate) fn print(list: &ListView, session: &Session) -> io::Result<()> {
    if session.output.json {
        return session.output.json(list);
    }
    table(&list.messages, session.output)?;
    if list.more {
        session.note("there are more: raise --limit, or pass over these with --offset");
    }
    if list.messages.is_empty() {
        session.note("no message fits");
    }
    Ok(())
}

fn table(messages: &[MessageView], output: Output) -> io::Result<()> {
    let headings = [
        "id",
        "status",
        "topic",
        "key",
        "sink",
        "attempts",
        "detail",
        "created",
        "due or ended",
        "error",
    ];
    let rows = messages.iter().map(|message| row(message, output.is_terminal()));
    output.table(&headings, rows.collect())
}

fn row(message: &MessageView, cut: bool) -> Vec<Field> {
    let leg = message.legs.first();
    let text = |text: Option<&String>| Field::from(text.map_or("", String::as_str));
    let error = leg.and_then(|leg| leg.last_error.as_deref()).unwrap_or_default();
    let shown: String = if cut && error.chars().count() > 60 {
        error.chars().take(59).chain(['…']).collect()
    } else {
        error.to_owned()
    };
    vec![
        message
            .id
            .map_or_else(|| Field::toned("unreadable", Tone::Bad), Field::from),
        Field::toned(message.status.as_str(), tone(message.status)),
        Field::from(&message.topic),
        text(message.key.as_ref()),
        text(leg.and_then(|leg| leg.leg.as_ref())),
        leg.map_or(0, |leg| leg.attempts).into(),
        text(leg.and_then(|leg| leg.detail.as_ref())),
        seconds(&message.created_at).into(),
        leg.and_then(|leg| leg.due_at.as_deref().or(leg.ended_at.as_deref()))
            .map_or("", seconds)
            .into(),
        Field::toned(shown, Tone::Dim),
    ]
}

/// How a status is meant.
pub(crate) fn tone(status: Status) -> Tone {
    match status {
        Status::Pending => Tone::Plain,
        Status::Retry => Tone::Warning,
        Status::Delivered => Tone::Good,
        Status::Dead => Tone::Bad,
    }
}

/// A time of a view up to its seconds.
pub(crate) fn seconds(time: &str) -> &str {
    time.get(.."2026-01-31T12:00:00".len()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_tables_end_with_the_second() {
        assert_eq!(seconds("2026-01-31T12:00:00.123456Z"), "2026-01-31T12:00:00");
        assert_eq!(seconds("later"), "later");
    }
}
