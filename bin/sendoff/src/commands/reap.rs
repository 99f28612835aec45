//! `sendoff reap`: lanes of relays that are gone become free, and items of workers that are gone become due.

use std::time::Duration;

use crate::exit::{Done, Exit};
use crate::session::Session;

/// Free the lanes of relays whose lease has run out, and the items of workers whose lease ran out long ago; other relays and
/// workers take them by themselves, if there are any
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Take items whose lease ran out this long ago
    #[arg(long, value_name = "AGE", default_value = "10m", value_parser = crate::config::parse_duration)]
    stale_after: Duration,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let reaped = session.operator().await?.reap(args.stale_after).await?;
    if session.output.json {
        session.output.json(&reaped)?;
    } else {
        session.output.line(&format!(
            "{} lanes freed, {} items reaped",
            reaped.lanes_freed, reaped.items_reaped
        ))?;
    }
    Ok(Exit::Ok)
}
