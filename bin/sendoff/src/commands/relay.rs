//! `sendoff relay`: delivers messages.

use std::path::PathBuf;

use sendoff::{Error, Result};
use sendoff_relay::{OnceReport, Relay};
use sendoff_watch::{Surroundings, Watch};
use serde_json::json;

use crate::config::{Config, SinkConfig};
use crate::exit::{Done, Exit};
use crate::reached::reached;
use crate::reaper;
use crate::session::{Session, host};
use crate::signals;
use crate::source::{self, Source};
use crate::store::Store;

/// Deliver messages until SIGTERM or Ctrl-C, then wait for the sinks and release the lanes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Deliver the messages that are due now, print a report and stop
    #[arg(long)]
    once: bool,
    /// File to touch while the relay works [default: liveness_file in the configuration]
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    liveness_file: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let config = session.config()?;
    session.start_configured_log(config.log);
    crate::trace::start(&config.trace)?;
    let stop = signals::stop_token()?;
    if !config.sources.is_empty() || session.global.source.is_some() {
        let mut sources = Source::open_all(&config, session.global.source.as_deref())?;
        if !args.once {
            let watching = match watch(&config, args.liveness_file) {
                Some(mut watch) => {
                    let watched = sources.iter_mut().map(|source| source.watched(&mut watch));
                    let watched = watched.collect::<Result<_>>()?;
                    Some(watch.start(watched).await?)
                }
                None => None,
            };
            let served = source::serve(sources, stop).await;
            if let Some(watching) = watching {
                watching.end().await;
            }
            served?;
            return Ok(Exit::Ok);
        }
        return tell_all(source::once(sources, &stop).await, &config, session);
    }
    let store = Store::open(&config.database)?;
    let name = format!("{}:{}", host(), std::process::id());
    let builder = Relay::builder(store.relay.clone()).name(name);
    if !args.once {
        let mut watch = watch(&config, args.liveness_file);
        let subject = watch.as_mut().map(|watch| watch.subject(""));
        let builder = match &subject {
            Some(subject) => builder.observer(subject.clone()),
            None => builder,
        };
        let relay = config.apply(builder)?.build()?;
        // First of all, so that the probes show why the relay has not started yet.
        let watching = match watch.zip(subject) {
            Some((watch, subject)) => {
                let surroundings = Surroundings {
                    store: store.relay.clone(),
                    migrate: Some(store.migrate.clone()),
                    sinks: relay.sinks(),
                };
                Some(watch.start(vec![(subject, surroundings)]).await?)
            }
            None => None,
        };
        if !reached(&stop, || store.prepare()).await? {
            return Ok(Exit::Ok);
        }
        let report = reaper::beside(&store.work, config.relay.reap_after, Box::pin(relay.run(stop))).await?;
        if let Some(watching) = watching {
            watching.end().await;
        }
        tracing::info!(
            event = "relay_done",
            delivered = report.delivered,
            retried = report.retried,
            deferred = report.deferred,
            dead = report.dead,
            "stopped"
        );
        return Ok(Exit::Ok);
    }
    let relay = config.apply(builder)?.build()?;
    store.prepare().await?;
    let report = relay.run_once(stop).await?;
    tell(&told(&report), &as_json(&report), &config, session)?;
    Ok(Exit::Ok)
}

/// Prints the report of a run. With a stdout sink it goes to standard error, so that it is not mistaken for a message.
fn tell(text: &str, json: &serde_json::Value, config: &Config, session: &Session) -> std::io::Result<()> {
    if config.sinks.iter().any(SinkConfig::uses_stdout) {
        session.note(text);
        return Ok(());
    }
    if session.output.json {
        session.output.json(json)
    } else {
        session.output.line(text)
    }
}

/// Prints the report of every source, and returns the first error among them.
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

/// The watch as configured; `None` if it is off, which costs nothing.
pub(super) fn watch(config: &Config, liveness_file: Option<PathBuf>) -> Option<Watch> {
    let mut settings = config.watch.config(config.statsd.config(false));
    settings.liveness_file = liveness_file.or(settings.liveness_file);
    (!settings.is_off()).then(|| Watch::new(settings))
}

fn remaining(report: &OnceReport) -> u64 {
    report.remaining.ready + report.remaining.due + report.remaining.waiting
}

fn told(report: &OnceReport) -> String {
    let OnceReport { run, remaining: left } = report;
    format!(
        "processed {}: {} deliveries confirmed, {} attempts to retry, {} deferred, {} dead; \
         remaining rows {}: {} ready, {} due, {} waiting; dead letters {}",
        run.processed(),
        run.delivered,
        run.retried,
        run.deferred,
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
        "deferred": run.deferred,
        "dead": run.dead,
        "remaining": remaining(report),
        "backlog": {"ready": left.ready, "due": left.due, "waiting": left.waiting, "dead": left.dead},
    })
}
