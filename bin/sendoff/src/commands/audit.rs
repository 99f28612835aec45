//! `sendoff audit`: what operators did.

use serde_json::json;

use crate::exit::{Done, Exit};
use crate::session::Session;

/// Show what operators did, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let audit = session.operator().await?.audit(args.limit).await?;
    if session.output.json {
        session.output.json(&json!({"audit": audit}))?;
        return Ok(Exit::Ok);
    }
    let rows = audit.into_iter().map(|row| {
        vec![
            row.at.into(),
            row.who.into(),
            row.action.into(),
            row.affected.into(),
            row.filter.to_string().into(),
        ]
    });
    session
        .output
        .table(&["at", "who", "action", "affected", "filter"], rows.collect())?;
    Ok(Exit::Ok)
}
