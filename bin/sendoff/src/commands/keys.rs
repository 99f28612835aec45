//! `sendoff keys`: keys whose messages wait behind one that failed.

use serde_json::json;

use crate::exit::{Done, Exit};
use crate::output::{Field, Tone};
use crate::session::Session;

/// Look at keys whose messages wait behind one that failed, and let them go on
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List them, those with the most waiting messages first
    Ls {
        /// How many
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Let the messages behind a dead letter go; the letter itself stays dead
    Release {
        /// The key
        key: String,
        /// Only for this sink
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
                session.output.json(&json!({"keys": keys}))?;
                return Ok(Exit::Ok);
            }
            let rows = keys.into_iter().map(|key| {
                let tone = if key.state == "dead" { Tone::Bad } else { Tone::Warning };
                let head = key.head.map(|id| id.to_string()).unwrap_or_default();
                let error = key.last_error.unwrap_or_default();
                vec![
                    key.key.into(),
                    key.leg.into(),
                    Field::toned(key.state, tone),
                    key.held.into(),
                    head.into(),
                    error.into(),
                ]
            });
            session
                .output
                .table(&["key", "sink", "head is", "held", "head", "error"], rows.collect())?;
        }
        Command::Release { key, sink } => {
            let released = operator.release_key(&key, sink.as_deref()).await?;
            if session.output.json {
                session.output.json(&json!({"released": released}))?;
            } else {
                session
                    .output
                    .line(&format!("{released} dead letters block {key} no more"))?;
            }
        }
    }
    Ok(Exit::Ok)
}
