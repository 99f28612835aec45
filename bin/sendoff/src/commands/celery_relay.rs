//! `sendoff celery-relay`: delivers the tasks of a Django application with django-celery-outbox.

use std::sync::Arc;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result, Sink};
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_store_django_celery::{Database, DjangoConfig, DjangoOutbox, DjangoRelay, Report, Settings, Stats};
use sendoff_wire::Address;
use serde_json::json;

use crate::config::{Config, DatabaseUrl, parse_duration};
use crate::exit::{Done, Exit};
use crate::reached::reached;
use crate::session::Session;
use crate::signals;

use super::celery_flags::Flags;
use super::celery_watch::CeleryWatch;

/// Deliver the tasks of django-celery-outbox, instead of or next to its own relay
///
/// The flags up to --liveness-file are those of `manage.py celery_outbox_relay`. Queues and routes come from the sink
/// of type celery in the configuration file, if there is one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Celery's broker_url: amqp://, pyamqp://, amqps://, redis:// or rediss:// [default: the sink's]
    #[arg(long, value_name = "URL", env = "SENDOFF_CELERY_BROKER", hide_env_values = true)]
    broker: Option<String>,
    /// Name of the sink of type celery whose settings to use, if there are several
    #[arg(long, value_name = "NAME")]
    sink: Option<String>,
    /// How to declare queues [default: the sink's, or passive]
    #[arg(long, value_enum, value_name = "HOW")]
    declare: Option<DeclareChoice>,
    /// Keep tasks in the table until this long before their eta, such as 30s [default: the sink's]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    hold_eta: Option<Duration>,
    /// How long to keep dead letters, such as 30d [default: no limit]
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    dead_letter_retention: Option<Duration>,
    /// Time zone of Django's sessions on MySQL or MariaDB [default: the server's]
    #[arg(long, value_name = "ZONE")]
    mysql_time_zone: Option<String>,
    /// Deliver eligible tasks, print a report and stop
    #[arg(long)]
    once: bool,
}

/// How queues are declared.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DeclareChoice {
    /// Do not declare queues
    Off,
    /// Check that queues exist; a task whose queue is missing fails and is retried
    Passive,
    /// Create queues, as Celery's producers do
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
    tracing::info!(event = "celery_relay_started", "celery relay started");
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

/// The tables of django-celery-outbox in the configured database.
pub(super) fn open(config: &Config, session: &Session, mysql_time_zone: Option<String>) -> Result<DjangoOutbox> {
    let database = match config.database_of(session.global.source.as_deref())?.url()? {
        DatabaseUrl::Postgres(url) => Database::Postgres(url.clone()),
        DatabaseUrl::Mysql(url) => Database::Mysql(url.clone()),
        DatabaseUrl::Sqlite(path) => Database::Sqlite(path.clone()),
    };
    DjangoOutbox::new(&DjangoConfig::new(database).mysql_time_zone(mysql_time_zone))
}

/// The settings of the configured sink, overridden by flags.
fn broker(args: &Args, config: &Config) -> Result<CeleryConfig> {
    let mut celeries = config
        .sinks
        .iter()
        .filter_map(|sink| Some((sink.name(), sink.own::<CeleryConfig>()?)));
    let found = match &args.sink {
        Some(wanted) => Some(celeries.find(|(name, _)| name == wanted).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("there is no sink {wanted:?} of type celery"),
            )
            .because("no sink of type celery in the configuration has that name")
            .next_step("list the sinks with `sendoff sink ls`")
        })?),
        None => celeries.next(),
    };
    if args.sink.is_none() && celeries.next().is_some() {
        return Err(
            Error::new(ErrorKind::Invalid, "several sinks of type celery are configured")
                .because("celery-relay sends to one broker")
                .next_step("choose one with --sink NAME"),
        );
    }
    let mut settings = found.map(|(_, settings)| settings.clone()).unwrap_or_default();
    if let Some(url) = &args.broker {
        settings.url = Some(Address::parse(url)?);
    }
    if settings.url.is_none() {
        return Err(Error::new(ErrorKind::Invalid, "no broker is configured")
            .because("neither --broker nor a sink of type celery sets a URL")
            .next_step("set --broker to the broker_url of the Celery application"));
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
        "{} published, {} to retry, {} dead, {} deferred, {} held; remaining: {} eligible, {} waiting; dead letters {}",
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
