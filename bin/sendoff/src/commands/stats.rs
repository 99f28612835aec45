//! `sendoff stats`: the outbox at a glance.

use std::time::Duration;

use sendoff::store::ItemCounts;
use sendoff_operate::SummaryView;

use crate::exit::{Done, Exit};
use crate::output::{Field, Tone};
use crate::session::Session;

/// Show how much is pending, failed, dead and delivered, and how old the oldest pending message is
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(_args: Args, session: &Session) -> Done {
    let summary = session.operator().await?.summary().await?;
    // Roles that may not look at items see the messages all the same.
    let items = session.ready_store().await?.work.item_counts().await;
    let items = items.ok().filter(|items| items.total() > 0);
    if session.output.json {
        session.output.json(&Stats { summary, items })?;
        return Ok(Exit::Ok);
    }
    let mut rows = rows(&summary);
    rows.extend(items.iter().flat_map(item_rows));
    session.output.table(&["what", "count", ""], rows)?;
    Ok(Exit::Ok)
}

/// What is printed as JSON.
#[derive(serde::Serialize)]
struct Stats {
    #[serde(flatten)]
    summary: SummaryView,
    /// Only where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<ItemCounts>,
}

fn item_rows(items: &ItemCounts) -> Vec<Vec<Field>> {
    let row = |what: &str, count: u64, tone: Tone, note: &str| {
        vec![
            what.into(),
            Field::toned(count.to_string(), if count > 0 { tone } else { Tone::Plain }),
            note.to_owned().into(),
        ]
    };
    vec![
        row(
            "items pending",
            items.pending,
            Tone::Plain,
            "for the application's own workers",
        ),
        row(
            "items running",
            items.running,
            Tone::Plain,
            "those of vanished workers included",
        ),
        row("items retry", items.retry, Tone::Warning, "tried before"),
        row("items completed", items.completed, Tone::Good, "kept by the retention"),
        row("items failed", items.failed, Tone::Bad, "given up"),
    ]
}

fn rows(summary: &SummaryView) -> Vec<Vec<Field>> {
    let row = |what: &str, count: u64, tone: Tone, note: String| {
        vec![
            what.into(),
            Field::toned(count.to_string(), if count > 0 { tone } else { Tone::Plain }),
            note.into(),
        ]
    };
    let oldest = |seconds: Option<f64>| {
        seconds.map_or_else(String::new, |seconds| {
            let age = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
            format!("the oldest for {:.1} s", age.as_secs_f64())
        })
    };
    vec![
        row(
            "total",
            summary.total,
            Tone::Plain,
            "what `sendoff ls` lists".to_owned(),
        ),
        row(
            "pending",
            summary.pending,
            Tone::Plain,
            oldest(summary.oldest_pending_seconds),
        ),
        row(
            "ready",
            summary.ready,
            Tone::Plain,
            oldest(summary.oldest_ready_seconds),
        ),
        row(
            "waiting",
            summary.waiting,
            Tone::Plain,
            "scheduled, backing off, held, or for a sink that is down".to_owned(),
        ),
        row(
            "failed",
            summary.failed,
            Tone::Warning,
            "of the waiting: those with failed attempts".to_owned(),
        ),
        row("dead", summary.dead, Tone::Bad, "see `sendoff dead ls`".to_owned()),
        row(
            "delivered",
            summary.delivered,
            Tone::Good,
            "kept by the retention".to_owned(),
        ),
    ]
}
