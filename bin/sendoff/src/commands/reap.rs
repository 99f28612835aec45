//! `sendoff reap`: frees the lanes of vanished relays and the jobs of vanished workers.

use std::time::Duration;

use crate::exit::{Done, Exit};
use crate::session::Session;

/// Free lanes and jobs whose lease has expired; running relays and workers also do this themselves
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only free jobs whose lease expired at least this long ago
    #[arg(long, value_name = "AGE", default_value = "10m", value_parser = crate::config::parse_duration)]
    stale_after: Duration,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let reaped = session.operator().await?.reap(args.stale_after).await?;
    if session.output.json {
        session.output.json(&reaped)?;
    } else {
        session.output.line(&format!(
            "{} lanes freed, {} jobs reaped",
            reaped.lanes_freed, reaped.jobs_reaped
        ))?;
    }
    Ok(Exit::Ok)
}
