//! `sendoff keys`: blocked keys.

use sendoff_operate::PageView;
use serde_json::json;

use crate::exit::{Done, Exit};
use crate::output::{Field, Tone};
use crate::session::Session;
use crate::table::Column;

/// List blocked ordering keys, and release them
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List keys with messages blocked behind a failed one, most blocked first
    Ls {
        /// Maximum number of keys
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Make the messages behind a dead letter due; the dead letter stays dead
    Release {
        /// Ordering key to release
        key: String,
        /// Release the key only at this sink
        #[arg(long, value_name = "SINK")]
        sink: Option<String>,
    },
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let operator = session.operator().await?;
    match args.command {
        Command::Ls { limit } => {
            let keys = operator.keys(limit).await?;
            if session.output.json {
                session.output.json(&PageView::whole(keys))?;
                return Ok(Exit::Ok);
            }
            let rows = keys.into_iter().map(|key| {
                let tone = if key.state == "dead" { Tone::Bad } else { Tone::Warning };
                let head = key.head.map(|id| id.to_string()).unwrap_or_default();
                let error = key.last_error.unwrap_or_default();
                vec![
                    key.key.into(),
                    key.sink.into(),
                    Field::toned(key.state, tone),
                    key.blocked.into(),
                    head.into(),
                    error.into(),
                ]
            });
            session.output.table(
                &[
                    Column::cut("key"),
                    Column::cut("sink"),
                    Column::whole("head state"),
                    Column::whole("blocked").spare(1),
                    Column::whole("head"),
                    Column::cut("error"),
                ],
                rows.collect(),
            )?;
        }
        Command::Release { key, sink } => {
            let released = operator.release_key(&key, sink.as_deref()).await?;
            if session.output.json {
                session.output.json(&json!({"released": released}))?;
            } else {
                session.output.line(&format!("{key} released"))?;
            }
        }
    }
    Ok(Exit::Ok)
}
