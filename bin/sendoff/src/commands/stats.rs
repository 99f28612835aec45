//! `sendoff stats`: counts of the outbox.

use std::time::Duration;

use sendoff::store::JobCounts;
use sendoff_operate::SummaryView;

use crate::exit::{Done, Exit};
use crate::output::{Field, Tone};
use crate::session::Session;

/// Count messages, deliveries and jobs by state, and show the age of the oldest pending message
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(_args: Args, session: &Session) -> Done {
    let summary = session.operator().await?.summary().await?;
    // A role without access to jobs still sees the messages.
    let jobs = session.ready_store().await?.work.job_counts().await;
    let jobs = jobs.ok().filter(|jobs| jobs.total() > 0);
    if session.output.json {
        session.output.json(&Stats { summary, jobs })?;
        return Ok(Exit::Ok);
    }
    let mut rows = rows(&summary);
    rows.extend(jobs.iter().flat_map(job_rows));
    session.output.table(&["what", "count", "of", ""], rows)?;
    Ok(Exit::Ok)
}

/// The JSON output.
#[derive(serde::Serialize)]
struct Stats {
    #[serde(flatten)]
    summary: SummaryView,
    /// Present only if there are jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<JobCounts>,
}

/// The unit of counts that have messages and deliveries: a message counts once until it is routed, then each of its
/// deliveries does.
const LINES: &str = "lines of `sendoff ls`";

fn job_rows(jobs: &JobCounts) -> Vec<Vec<Field>> {
    let row = |what: &str, count: u64, tone: Tone, note: &str| {
        vec![
            what.into(),
            Field::toned(count.to_string(), if count > 0 { tone } else { Tone::Plain }),
            "jobs".into(),
            note.to_owned().into(),
        ]
    };
    vec![
        row(
            "jobs pending",
            jobs.pending,
            Tone::Plain,
            "for the application's own workers",
        ),
        row(
            "jobs running",
            jobs.running,
            Tone::Plain,
            "including those of vanished workers",
        ),
        row("jobs retry", jobs.retry, Tone::Warning, "tried before"),
        row("jobs completed", jobs.completed, Tone::Good, "kept by retention"),
        row("jobs failed", jobs.failed, Tone::Bad, "given up"),
    ]
}

fn rows(summary: &SummaryView) -> Vec<Vec<Field>> {
    let row = |what: &str, count: u64, tone: Tone, unit: &str, note: String| {
        vec![
            what.into(),
            Field::toned(count.to_string(), if count > 0 { tone } else { Tone::Plain }),
            unit.to_owned().into(),
            note.into(),
        ]
    };
    let oldest = |seconds: Option<f64>| {
        seconds.map_or_else(String::new, |seconds| {
            let age = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
            format!("oldest: {:.1} s", age.as_secs_f64())
        })
    };
    vec![
        row(
            "total",
            summary.total,
            Tone::Plain,
            LINES,
            "pending, failed, dead and delivered".to_owned(),
        ),
        row(
            "pending",
            summary.pending,
            Tone::Plain,
            LINES,
            oldest(summary.oldest_pending_seconds),
        ),
        row(
            "ready",
            summary.ready,
            Tone::Plain,
            "messages",
            oldest(summary.oldest_ready_seconds),
        ),
        row(
            "waiting",
            summary.waiting,
            Tone::Plain,
            LINES,
            "scheduled, retry, blocked or deferred".to_owned(),
        ),
        row(
            "failed",
            summary.failed,
            Tone::Warning,
            "deliveries",
            "of the waiting, those with failed attempts".to_owned(),
        ),
        row(
            "dead",
            summary.dead,
            Tone::Bad,
            "dead letters",
            "see `sendoff dead ls`".to_owned(),
        ),
        row(
            "delivered",
            summary.delivered,
            Tone::Good,
            "deliveries",
            "kept by retention".to_owned(),
        ),
    ]
}
