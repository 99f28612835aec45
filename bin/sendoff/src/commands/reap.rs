//! `sendoff reap`: lanes of relays that are gone become free, and items of workers that are gone become due.

use std::time::Duration;

use serde_json::json;

use crate::exit::{Done, Exit};
use crate::session::Session;

/// Free the lanes of relays whose lease has run out, and the items of workers that have not renewed them for long; relays
/// and workers do without it when leases run out
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Take items that were last claimed or renewed this long ago, whatever their lease says
    #[arg(long, value_name = "AGE", default_value = "10m", value_parser = crate::config::parse_duration)]
    stale_after: Duration,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let store = session.ready_store().await?;
    let freed = store.relay.evict().await?;
    let reaped = store.work.reap(args.stale_after).await?;
    if session.output.json {
        session
            .output
            .json(&json!({"lanes_freed": freed, "items_reaped": reaped}))?;
    } else {
        session
            .output
            .line(&format!("{freed} lanes freed, {reaped} items reaped"))?;
    }
    Ok(Exit::Ok)
}
