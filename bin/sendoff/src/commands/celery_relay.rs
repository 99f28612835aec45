//! `sendoff celery-relay`: delivers the tasks of a Django application that uses django-celery-outbox.

use std::sync::Arc;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result, Sink};
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_store_django_celery::{Database, DjangoConfig, DjangoOutbox, DjangoRelay, Report, Settings, Stats};
use sendoff_wire::Address;
use serde_json::json;

use crate::config::{Config, DatabaseUrl, SinkKind, parse_duration};
use crate::exit::{Done, Exit};
use crate::reached::reached;
use crate::session::Session;
use crate::signals;

use super::celery_flags::Flags;
use super::celery_watch::CeleryWatch;

/// Deliver the tasks in the tables of django-celery-outbox, in place of its own relay or beside it
///
/// The flags up to --liveness-file are those of `manage.py celery_outbox_relay`. Queues and routes are taken from the sink of
/// type celery in the configuration file, if there is one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Celery's broker_url: amqp://, pyamqp://, amqps://, redis:// or rediss:// [default: the configured sink's]
    #[arg(long, value_name = "URL", env = "SENDOFF_CELERY_BROKER", hide_env_values = true)]
    broker: Option<String>,
    /// The sink of type celery whose settings are used, where several are configured
    #[arg(long, value_name = "NAME")]
    sink: Option<String>,
    /// Whether queues are declared [default: the configured sink's, or passive]
    #[arg(long, value_enum, value_name = "HOW")]
    declare: Option<DeclareChoice>,
    /// Keep tasks in the table until so long before their eta, such as 30s [default: the configured sink's hold_eta]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    hold_eta: Option<Duration>,
    /// How long dead letters are kept, such as 30d [default: for ever]
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    dead_letter_retention: Option<Duration>,
    /// The time zone of Django's sessions on MySQL or MariaDB, if it is not the server's
    #[arg(long, value_name = "ZONE")]
    mysql_time_zone: Option<String>,
    /// Deliver what is eligible now, print what was done and what remains, and stop
    #[arg(long)]
    once: bool,
}

/// Whether queues are declared.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DeclareChoice {
    /// Never
    Off,
    /// Asked for: a task whose queue is missing fails, and is tried again
    Passive,
    /// Made, as Celery's producers do
    Active,
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let config = session.config()?;
    session.start_configured_log(config.log);
    let stop = signals::stop_token()?;
    let outbox = open(&config, session, args.mysql_time_zone.clone())?;
    let sink: Arc<dyn Sink> = Arc::new(CelerySink::new(&broker(&args, &config)?)?);
    let settings = Settings {
        dead_letter_retention: args.dead_letter_retention,
        ..args.flags.settings()
    };
    let stale = settings.stale_timeout;
    let watch = config.watch.config(config.statsd.config(true));
    let watch = match watch.is_off() || args.once {
        true => None,
        false => {
            let often = (stale, settings.queue_snapshot_refresh);
            Some(CeleryWatch::start(watch, sink.clone(), outbox.clone(), often).await?)
        }
    };
    let relay = match &watch {
        Some(watch) => {
            let sink = watch.told(sink, settings.max_retries);
            DjangoRelay::new(outbox.clone(), sink, settings)?.monitor(watch.monitor())
        }
        None => DjangoRelay::new(outbox.clone(), sink, settings)?,
    };
    if args.once {
        outbox.check().await?;
        let report = relay.run_once(stop).await?;
        let remaining = outbox.stats(stale).await?;
        if session.output.json {
            session.output.json(&as_json(report, remaining))?;
        } else {
            session.output.line(&told(report, remaining))?;
        }
        return Ok(Exit::Ok);
    }
    if !reached(&stop, || outbox.check()).await? {
        return Ok(Exit::Ok);
    }
    tracing::info!(
        event = "celery_relay_started",
        "relaying the tasks of django-celery-outbox"
    );
    let Report {
        published,
        failed,
        dead,
        deferred,
        held,
        released,
    } = relay.run(stop).await?;
    if let Some(watch) = watch {
        watch.end().await;
    }
    tracing::info!(
        event = "celery_relay_done",
        published,
        failed,
        dead,
        deferred,
        held,
        released,
        "stopped"
    );
    Ok(Exit::Ok)
}

/// The tables in the configured database.
pub(super) fn open(config: &Config, session: &Session, mysql_time_zone: Option<String>) -> Result<DjangoOutbox> {
    let database = match config.database_of(session.global.source.as_deref())?.url()? {
        DatabaseUrl::Postgres(url) => Database::Postgres(url.clone()),
        DatabaseUrl::Mysql(url) => Database::Mysql(url.clone()),
        DatabaseUrl::Sqlite(path) => Database::Sqlite(path.clone()),
    };
    DjangoOutbox::new(&DjangoConfig::new(database).mysql_time_zone(mysql_time_zone))
}

/// The settings of the sink: the configured one's, with what the flags say.
fn broker(args: &Args, config: &Config) -> Result<CeleryConfig> {
    let mut celeries = config.sinks.iter().filter_map(|sink| match &sink.kind {
        SinkKind::Celery(settings) => Some((sink.name(), settings)),
        _ => None,
    });
    let found = match &args.sink {
        Some(wanted) => Some(celeries.find(|(name, _)| name == wanted).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("there is no sink {wanted:?} of type celery"),
            )
            .because("the configuration file has none of that name")
            .next_step("list the sinks with `sendoff sink ls`")
        })?),
        None => celeries.next(),
    };
    if args.sink.is_none() && celeries.next().is_some() {
        return Err(Error::new(ErrorKind::Invalid, "there are several sinks of type celery")
            .because("the relay sends to one broker")
            .next_step("name one with --sink"));
    }
    let mut settings = found.map(|(_, settings)| (**settings).clone()).unwrap_or_default();
    if let Some(url) = &args.broker {
        settings.url = Some(Address::parse(url)?);
    }
    if settings.url.is_none() {
        return Err(Error::new(ErrorKind::Invalid, "no broker is named")
            .because("neither --broker nor a sink of type celery says where tasks go")
            .next_step("give --broker with the broker_url of the Celery application"));
    }
    settings.confirm_timeout = args.flags.settings().send_timeout;
    settings.hold_eta = args.hold_eta.or(settings.hold_eta);
    match args.declare {
        Some(DeclareChoice::Off) => settings.declare = Declare::Off,
        Some(DeclareChoice::Passive) => settings.declare = Declare::Passive,
        Some(DeclareChoice::Active) => settings.declare = Declare::Active,
        None => {}
    }
    Ok(settings)
}

fn told(report: Report, left: Stats) -> String {
    format!(
        "{} published, {} to be tried again, {} dead, {} put off, {} held; remaining: {} eligible, {} waiting; dead letters {}",
        report.published,
        report.failed,
        report.dead,
        report.deferred,
        report.held,
        left.eligible,
        left.waiting,
        left.dead
    )
}

fn as_json(report: Report, left: Stats) -> serde_json::Value {
    json!({
        "published": report.published,
        "failed": report.failed,
        "dead": report.dead,
        "deferred": report.deferred,
        "held": report.held,
        "remaining": {"eligible": left.eligible, "waiting": left.waiting, "dead": left.dead},
    })
}
