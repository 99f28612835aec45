//! `sendoff failures`: what fails, by sink, reason and error.

use sendoff_operate::{FailureView, SampledCount};

use crate::age::Times;
use crate::commands::ls::tone;
use crate::exit::{Done, Exit};
use crate::filter::FilterArgs;
use crate::output::{Field, Tone};
use crate::session::Session;
use crate::table::Column;

/// Group dead letters and deliveries in retry by sink, reason and error
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Act on a group with `sendoff dead retry --group ID`, `sendoff dead discard --group ID` or, for \
                  deliveries in retry, `sendoff retry --group ID`."
)]
pub(crate) struct Args {
    /// Only failures with this status: dead or retry
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Print exact times instead of ages
    #[arg(long)]
    times: bool,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let written = args
        .filter
        .written(args.status.map(|status| format!("status={status}")))?;
    let operator = session.operator().await?;
    args.filter.check_sink(session).await?;
    let failures = operator.failures(&operator.filter(&written).await?).await?;
    if session.output.json {
        session.output.json(&failures)?;
        return Ok(Exit::Ok);
    }
    let times = Times::of(&session.output, args.times, &operator).await?;
    let columns = [
        Column::whole("group"),
        Column::whole("count"),
        Column::cut("sink"),
        Column::whole("reason"),
        Column::whole("first"),
        Column::whole("last"),
        Column::whole("example").spare(1),
        Column::cut("error"),
    ];
    let rows = failures.items.iter().map(|failure| row(failure, &times));
    session.output.table(&columns, rows.collect())?;
    if failures.items.is_empty() {
        session.note("no failures match");
    }
    if let Some(reached) = &failures.looked_back_to {
        session.note(&format!(
            "only the newest failures were read, back to {reached}; to see older ones, use a filter"
        ));
    }
    Ok(Exit::Ok)
}

fn row(failure: &FailureView, times: &Times) -> Vec<Field> {
    let count = SampledCount::counted(failure.count, failure.at_least);
    let example = failure.example.map_or_else(String::new, |id| id.to_string());
    vec![
        (&failure.group).into(),
        count.to_string().into(),
        failure.sink.as_deref().unwrap_or_default().into(),
        Field::toned(&failure.reason, tone(failure.status)),
        times.shown(&failure.first_seen).into(),
        times.shown(&failure.last_seen).into(),
        example.into(),
        Field::toned(&failure.error, Tone::Dim),
    ]
}
