//! `sendoff relay`: delivers.

use std::time::Duration;

use sendoff::{Error, Result};
use sendoff_relay::{OnceReport, Relay};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, SinkKind};
use crate::exit::{Done, Exit};
use crate::session::{Session, host};
use crate::signals;
use crate::source::{self, Source};
use crate::store::Store;

/// The longest pause between two looks at a database that cannot be reached.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Deliver messages until SIGTERM or Ctrl-C, then finish what is with a sink and hand the rest over
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Deliver what is due now, print what was done and what remains, and stop
    #[arg(long)]
    once: bool,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let config = session.config()?;
    session.start_configured_log(config.log);
    crate::trace::start(&config.trace)?;
    let stop = signals::stop_token()?;
    if !config.sources.is_empty() || session.global.source.is_some() {
        let sources = Source::open_all(&config, session.global.source.as_deref())?;
        if !args.once {
            source::serve(sources, stop).await?;
            return Ok(Exit::Ok);
        }
        return tell_all(source::once(sources, &stop).await, &config, session);
    }
    let store = Store::open(&config.database)?;
    let name = format!("{}:{}", host(), std::process::id());
    let relay = config.apply(Relay::builder(store.relay.clone()).name(name))?.build()?;
    if !args.once {
        if !ready(&store, &stop).await? {
            return Ok(Exit::Ok);
        }
        let report = relay.run(stop).await?;
        tracing::info!(
            event = "relay_done",
            delivered = report.delivered,
            retried = report.retried,
            dead = report.dead,
            "stopped"
        );
        return Ok(Exit::Ok);
    }
    store.migrate.check_schema().await?;
    let report = relay.run_once(stop).await?;
    tell(&told(&report), &as_json(&report), &config, session)?;
    Ok(Exit::Ok)
}

/// Tells what a run came to. A sink may have written messages to standard output: a report among them would be taken for
/// one.
fn tell(text: &str, json: &serde_json::Value, config: &Config, session: &Session) -> std::io::Result<()> {
    let mut kinds = config.sinks.iter().map(|sink| &sink.kind);
    if kinds.any(|kind| matches!(kind, SinkKind::Stdout(_))) {
        session.note(text);
        return Ok(());
    }
    if session.output.json {
        session.output.json(json)
    } else {
        session.output.line(text)
    }
}

/// Tells what became of every source, and ends with the first error among them.
fn tell_all(ended: Vec<(String, Result<OnceReport>)>, config: &Config, session: &Session) -> Done {
    let (mut lines, mut reports, mut first_error) = (Vec::new(), serde_json::Map::new(), None::<Error>);
    for (source, ended) in ended {
        match ended {
            Ok(report) => {
                lines.push(format!("{source}: {}", told(&report)));
                reports.insert(source, as_json(&report));
            }
            Err(error) => {
                lines.push(format!("{source}: {error}"));
                reports.insert(source, json!({"error": error.to_string()}));
                first_error.get_or_insert(error);
            }
        }
    }
    tell(&lines.join("\n"), &json!({"sources": reports}), config, session)?;
    first_error.map_or(Ok(Exit::Ok), |error| Err(error.into()))
}

/// Waits for a database that cannot be reached, because a service that gives up while its database restarts needs
/// somebody to start it again. Everything else that is wrong with the tables is an error. `false`: told to stop.
async fn ready(store: &Store, stop: &CancellationToken) -> Result<bool> {
    let mut pause = Duration::from_millis(250);
    loop {
        match store.migrate.check_schema().await {
            Ok(()) => return Ok(true),
            Err(error) if error.is_temporary() => {
                tracing::warn!(event = "store_unreachable", %error, "waiting for the database");
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            () = stop.cancelled() => return Ok(false),
        }
    }
}

fn remaining(report: &OnceReport) -> u64 {
    report.remaining.ready + report.remaining.due + report.remaining.waiting
}

fn told(report: &OnceReport) -> String {
    let OnceReport { run, remaining: left } = report;
    format!(
        "processed {}: {} delivered, {} to be tried again, {} dead; remaining {}: {} ready, {} due, {} waiting; \
         dead letters {}",
        run.processed(),
        run.delivered,
        run.retried,
        run.dead,
        remaining(report),
        left.ready,
        left.due,
        left.waiting,
        left.dead
    )
}

fn as_json(report: &OnceReport) -> serde_json::Value {
    let OnceReport { run, remaining: left } = report;
    json!({
        "processed": run.processed(),
        "delivered": run.delivered,
        "retried": run.retried,
        "dead": run.dead,
        "remaining": remaining(report),
        "backlog": {"ready": left.ready, "due": left.due, "waiting": left.waiting, "dead": left.dead},
    })
}
