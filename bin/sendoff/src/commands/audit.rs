//! `sendoff audit`: the actions of operators.

use sendoff_operate::PageView;

use crate::exit::{Done, Exit};
use crate::session::Session;

/// Show the actions of operators, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Maximum number of actions to show
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let audit = session.operator().await?.audit(args.limit).await?;
    if session.output.json {
        session.output.json(&PageView::whole(audit))?;
        return Ok(Exit::Ok);
    }
    let rows = audit.into_iter().map(|row| {
        vec![
            row.at.into(),
            row.login.unwrap_or_default().into(),
            row.who.into(),
            row.action.into(),
            row.affected.into(),
            row.filter.to_string().into(),
        ]
    });
    session
        .output
        .table(&["at", "login", "who", "action", "affected", "filter"], rows.collect())?;
    Ok(Exit::Ok)
}
