//! `sendoff reap`: lanes of relays that are gone become free.

use serde_json::json;

use crate::exit::{Done, Exit};
use crate::session::Session;

/// Free the lanes of relays whose lease has run out; relays do it by themselves every second
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(_args: Args, session: &Session) -> Done {
    let freed = session.ready_store().await?.relay.evict().await?;
    if session.output.json {
        session.output.json(&json!({"lanes_freed": freed}))?;
    } else {
        session.output.line(&format!("{freed} lanes freed"))?;
    }
    Ok(Exit::Ok)
}
