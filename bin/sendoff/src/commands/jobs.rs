//! `sendoff jobs`: the jobs of the application's own workers.

use std::fmt::Write as _;
use std::io;

use sendoff::store::JobState;
use sendoff::{Error, ErrorKind, Uuid};
use sendoff_operate::{JobAct, JobListRequest, JobView, PageView, Progress};

use crate::age::Times;
use crate::commands::bulk::{BulkArgs, Change};
use crate::commands::ls::{NextPage, after};
use crate::commands::show::{CUT, TOO_LONG};
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::output::{Field, Tone, printable};
use crate::payload;
use crate::session::Session;
use crate::table::Column;

/// List and show jobs; retry and discard failed jobs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List jobs, oldest first
    Ls {
        /// Only jobs in this state: pending, running, retry, completed or failed
        #[arg(long, value_name = "STATE")]
        state: Option<JobState>,
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        page: NextPage,
    },
    /// Show one job
    Show {
        /// Id of the job
        id: Uuid,
    },
    /// Retry failed jobs: due now; attempts reset to 0
    Retry(BulkArgs),
    /// Delete failed jobs permanently
    Discard(BulkArgs),
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    match args.command {
        Command::Ls { state, filter, page } => {
            let written = filter.written([])?;
            let (operator, jobs) = session.operators().await?;
            let request = JobListRequest {
                state,
                filter: written,
                limit: page.limit,
                after: page.after.clone(),
                payload: page.payload,
                now: operator.now().await?,
            };
            let times = Times::of(&session.output, page.times, &operator).await?;
            list(&jobs.list(&request).await?, &times, session)?;
        }
        Command::Show { id } => show(&session.operators().await?.1.show(id).await?, session)?,
        Command::Retry(args) => return act(args, JobAct::Retry, session).await,
        Command::Discard(args) => return act(args, JobAct::Discard, session).await,
    }
    Ok(Exit::Ok)
}

fn list(list: &PageView<JobView>, times: &Times, session: &Session) -> io::Result<()> {
    if session.output.json {
        return session.output.json(list);
    }
    let rows = list.items.iter().map(|job| {
        vec![
            job.id.map_or_else(|| "unreadable".into(), Into::into),
            Field::toned(job.state.as_str(), tone(job.state)),
            (&job.topic).into(),
            job.key.as_deref().unwrap_or_default().into(),
            job.attempts.into(),
            job.lease_owner.as_deref().unwrap_or_default().into(),
            until(job).map_or_else(String::new, |at| times.shown(at)).into(),
            times.shown(&job.created_at).into(),
            job.last_error.as_deref().unwrap_or_default().into(),
        ]
    });
    let columns = [
        Column::whole("id"),
        Column::whole("state"),
        Column::cut("topic"),
        Column::cut("key").spare(2),
        Column::whole("attempts").spare(3),
        Column::cut("worker").spare(4),
        Column::whole("lease end or due").spare(1),
        Column::whole(if times.for_people() { "age" } else { "created" }),
        Column::cut("error"),
    ];
    session.output.table(&columns, rows.collect())?;
    after(list, "jobs", session);
    Ok(())
}

/// The time of its next event, or of its completion.
fn until(job: &JobView) -> Option<&str> {
    let times = [&job.lease_until, &job.due_at, &job.completed_at];
    times.into_iter().find_map(|time| time.as_deref())
}

/// The tone of a state.
fn tone(state: JobState) -> Tone {
    match state {
        JobState::Retry => Tone::Warning,
        JobState::Completed => Tone::Good,
        JobState::Failed => Tone::Bad,
        // Pending and running.
        _ => Tone::Plain,
    }
}

fn show(job: &JobView, session: &Session) -> io::Result<()> {
    if session.output.json {
        return session.output.json(job);
    }
    let id = job.id.map_or_else(|| "unreadable".to_owned(), |id| id.to_string());
    let most = job.max_attempts.map(|most| most.to_string());
    let attempts = job.attempts.to_string();
    let payload = format!("{} bytes of {}", job.payload_bytes, job.content_type);
    let lines = [
        ("job", Some(id.as_str())),
        ("state", Some(job.state.as_str())),
        ("topic", Some(&job.topic)),
        ("key", job.key.as_deref()),
        ("aggregate type", job.aggregate_type.as_deref()),
        ("aggregate id", job.aggregate_id.as_deref()),
        ("idempotency key", job.idempotency_key.as_deref()),
        ("attempts", Some(&attempts)),
        ("max attempts", most.as_deref()),
        ("last error", job.last_error.as_deref()),
        ("worker", job.lease_owner.as_deref()),
        ("lease ends", job.lease_until.as_deref()),
        ("due", job.due_at.as_deref()),
        ("created", Some(&job.created_at)),
        ("completed", job.completed_at.as_deref()),
        ("expires", job.expires_at.as_deref()),
        ("payload", Some(&payload)),
        ("headers", job.headers_cut.then_some(TOO_LONG)),
    ];
    let paint = session.output.paint();
    let mut text = String::new();
    for (name, value) in lines.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        let _ = writeln!(text, "{} {}", paint.dim(&format!("{name:<16}")), printable(value));
    }
    let shown = match (&job.payload, &job.payload_base64) {
        (Some(payload), _) => payload::text(payload, sendoff::envelope::is_json(&job.content_type)),
        (None, Some(encoded)) => payload::hexdump(encoded),
        (None, None) => String::new(),
    };
    if !shown.is_empty() {
        let _ = write!(text, "\n{shown}");
    }
    if job.payload_cut {
        text.push_str(CUT);
    }
    session.output.print(&text)
}

const RETRY: Change = Change {
    things: "failed jobs",
    done: "retried",
    would: "would_retry",
    question: |count| format!("Retry {count} failed jobs?"),
    none,
};

const DISCARD: Change = Change {
    things: "failed jobs",
    done: "discarded",
    would: "would_discard",
    question: |count| format!("Delete {count} failed jobs permanently?"),
    none,
};

fn none() -> Error {
    Error::new(ErrorKind::NotFound, "none of these is a failed job")
        .because("these jobs were already retried or discarded, or never failed")
        .next_step("check with `sendoff jobs ls --state failed`")
}

async fn act(args: BulkArgs, act: JobAct, session: &Session) -> Done {
    let change = match act {
        JobAct::Retry => &RETRY,
        JobAct::Discard => &DISCARD,
    };
    let written = args.written(change)?;
    args.has_no_group(change.things)?;
    let (operator, jobs) = session.operators().await?;
    let filter = operator.filter(&written).await?;
    let count = jobs.count(&filter).await?;
    let act = async |progress: Progress<'_>| jobs.act(act, &filter, progress).await;
    args.run(change, count, session, act).await
}
