//! `sendoff pause` and `sendoff resume`.

use sendoff::store::Pausable;
use sendoff_operate::PageView;
use serde_json::json;

use crate::exit::{Done, Exit};
use crate::filter::known_sinks;
use crate::session::Session;

/// Pause delivery of a topic or to a sink; without arguments, list the pauses
#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    #[command(subcommand)]
    what: Option<What>,
}

/// Resume a paused topic or sink
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Select a topic; * matches any text
    Topic {
        /// Name of the topic, or a pattern
        name: String,
    },
    /// Select a sink
    Sink {
        /// Name of the sink
        name: String,
    },
}

impl From<What> for Pausable {
    fn from(what: What) -> Self {
        match what {
            What::Topic { name } => Self::Topic(name),
            What::Sink { name } => Self::Sink(name),
        }
    }
}

pub(crate) async fn pause(args: PauseArgs, session: &Session) -> Done {
    let Some(what) = args.what else {
        return list(session).await;
    };
    let what = Pausable::from(what);
    if let Pausable::Sink(name) = &what {
        known_sinks(session).await?.check(name)?;
    }
    let new = session.operator().await?.pause(&what).await?;
    tell(
        session,
        &what,
        if new {
            "is paused; relays notice within a second"
        } else {
            "was already paused"
        },
        new,
    )
}

pub(crate) async fn resume(args: ResumeArgs, session: &Session) -> Done {
    let what = Pausable::from(args.what);
    let ended = session.operator().await?.resume(&what).await?;
    tell(
        session,
        &what,
        if ended { "is resumed" } else { "was not paused" },
        ended,
    )
}

fn tell(session: &Session, what: &Pausable, outcome: &str, changed: bool) -> Done {
    let (kind, name) = what.kind_and_name();
    if session.output.json {
        session
            .output
            .json(&json!({"kind": kind, "name": name, "changed": changed}))?;
    } else {
        session.output.line(&format!("the {kind} {name} {outcome}"))?;
    }
    Ok(Exit::Ok)
}

async fn list(session: &Session) -> Done {
    let pauses = session.operator().await?.pauses().await?;
    if session.output.json {
        session.output.json(&PageView::whole(pauses))?;
        return Ok(Exit::Ok);
    }
    let rows = pauses.into_iter().map(|pause| {
        vec![
            pause.kind.into(),
            pause.name.into(),
            pause.since.into(),
            pause.by.into(),
        ]
    });
    session.output.table(&["kind", "name", "since", "by"], rows.collect())?;
    Ok(Exit::Ok)
}
