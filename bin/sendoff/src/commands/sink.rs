//! `sendoff sink`: lists and tests sinks.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use clap::Subcommand;
use sendoff::store::{RowRef, Table};
use sendoff::{Error, ErrorKind, Headers, Outcome, Outgoing, Result, Uuid};
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use crate::config::{Config, SinkConfig};
use crate::exit::{Done, Exit};
use crate::output::Paint;
use crate::session::Session;

/// The header of the probe. Names that start with `sendoff-` are fields of the message.
const PROBE_HEADER: &str = "x-sendoff-probe";

/// List the configured sinks, or test one
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the sinks and their routes
    Ls,
    /// Send one test message to a sink; exit code 0 if the sink confirms it
    Test {
        /// Name of the sink to test
        name: String,
        /// Topic of the test message
        #[arg(long, default_value = "sendoff.probe")]
        topic: String,
    },
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let config = session.config()?;
    match args.action {
        Action::Ls => ls(&config, session),
        Action::Test { name, topic } => test(&config, &name, topic, session).await,
    }
}

fn ls(config: &Config, session: &Session) -> Done {
    let routes = |sink: &SinkConfig| -> Vec<&str> {
        let leads_there = config
            .routes
            .iter()
            .filter(|route| route.to.iter().any(|to| to == sink.name()));
        leads_there.map(|route| route.pattern.as_str()).collect()
    };
    if session.output.json {
        let shown = config.sinks.iter().map(|sink| {
            let mut shown = json!(sink);
            shown["routes"] = json!(routes(sink));
            shown
        });
        session.output.json(&json!({"sinks": shown.collect::<Vec<_>>()}))?;
        return Ok(Exit::Ok);
    }
    let rows = config.sinks.iter().map(|sink| {
        let routes = routes(sink).join(" ");
        vec![sink.name().into(), sink.kind.into(), routes.into()]
    });
    session.output.table(&["name", "type", "routes"], rows.collect())?;
    Ok(Exit::Ok)
}

/// The result of a test.
#[derive(Debug, Serialize)]
struct Tried<'a> {
    sink: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    topic: String,
    id: Uuid,
    reached: bool,
    outcome: Option<&'static str>,
    reason: Option<String>,
    milliseconds: u128,
}

async fn test(config: &Config, name: &str, topic: String, session: &Session) -> Done {
    let configured = find(config, name)?;
    let sink = configured.build()?;
    let limit = sink
        .limits()
        .timeout
        .unwrap_or_default()
        .max(configured.settings().timeout);
    let probe = Arc::new(probe(topic));
    let start = Instant::now();
    let (reached, outcome) = match within(limit, sink.check()).await {
        Ok(Ok(())) => {
            let sent = within(limit, sink.publish(&[Arc::clone(&probe)])).await;
            let nothing = || Outcome::Unknown("the sink returned no outcome".into());
            (
                true,
                sent.map_or_else(Outcome::Unknown, |outcomes| {
                    outcomes.into_iter().next().unwrap_or_else(nothing)
                }),
            )
        }
        Ok(Err(error)) => (false, Outcome::SinkDown(error.to_string().into())),
        Err(late) => (false, Outcome::SinkDown(late)),
    };
    let milliseconds = start.elapsed().as_millis();
    // A sink that hangs must not hang the program.
    let _ = within(Duration::from_secs(5), sink.close()).await;
    let (word, reason) = told(&outcome);
    let tried = Tried {
        sink: name,
        kind: configured.kind,
        topic: probe.topic.clone(),
        id: probe.id,
        reached,
        outcome: reached.then_some(word),
        reason,
        milliseconds,
    };
    // The probe itself may be on standard output; a report after it would be mistaken for a message.
    if configured.uses_stdout() {
        session.note(&in_words(&tried, session.stderr));
    } else if session.output.json {
        session.output.json(&tried)?;
    } else {
        session.output.line(&in_words(&tried, session.output.paint()))?;
    }
    Ok(match outcome {
        Outcome::Delivered => Exit::Ok,
        Outcome::Temporary(_)
        | Outcome::Permanent(_)
        | Outcome::Unknown(_)
        | Outcome::SinkDown(_)
        | Outcome::NotYet(_) => Exit::Failure,
    })
}

async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, sendoff::Reason> {
    timeout(limit, work)
        .await
        .map_err(|_| format!("no answer within {limit:?}").into())
}

fn find<'a>(config: &'a Config, name: &str) -> Result<&'a SinkConfig> {
    config.sinks.iter().find(|sink| sink.name() == name).ok_or_else(|| {
        let known: Vec<&str> = config.sinks.iter().map(SinkConfig::name).collect();
        let next = match known.as_slice() {
            [] => "add a [[sink]] to the configuration file".to_owned(),
            known => format!("use {}", known.join(" or ")),
        };
        Error::new(ErrorKind::NotFound, format!("there is no sink {name:?}"))
            .because("no sink in the configuration has that name")
            .next_step(next)
    })
}

/// A message that is in no database.
fn probe(topic: String) -> Outgoing {
    Outgoing {
        id: Uuid::now_v7(),
        topic,
        payload: r#"{"probe":true}"#.into(),
        headers: Headers::from_iter([(PROBE_HEADER, "true")]),
        created_at: SystemTime::now(),
        ..Outgoing::blank(RowRef {
            table: Table::Ready,
            lane: 0,
            seq: 0,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        })
    }
}

fn told(outcome: &Outcome) -> (&'static str, Option<String>) {
    match outcome {
        Outcome::Delivered => ("delivered", None),
        Outcome::Temporary(reason) => ("temporary", Some(reason.text().to_owned())),
        Outcome::Permanent(reason) => ("permanent", Some(reason.text().to_owned())),
        Outcome::Unknown(reason) => ("unknown", Some(reason.text().to_owned())),
        Outcome::SinkDown(reason) => ("down", Some(reason.text().to_owned())),
        Outcome::NotYet(reason) => ("not_yet", Some(reason.text().to_owned())),
    }
}

fn in_words(tried: &Tried<'_>, paint: Paint) -> String {
    let Tried {
        sink, id, milliseconds, ..
    } = tried;
    match (tried.outcome, &tried.reason) {
        (Some(_), None) => format!(
            "{} {sink} confirmed the probe {id} in {milliseconds} ms",
            paint.good("delivered:")
        ),
        (Some(word), Some(reason)) => format!("{} {reason}; the probe was {id}", paint.bad(&format!("{word}:"))),
        (None, reason) => format!(
            "{} {}",
            paint.bad("not reached:"),
            reason.as_deref().unwrap_or_default()
        ),
    }
}
