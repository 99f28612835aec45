//! Group `celery`: 20,000 tasks in the tables of django-celery-outbox, relayed by its own relay and by ours.

mod process;
mod queue;
mod replay;
mod table;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use sendoff::Sink;
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_store_django_celery::{Database, DjangoConfig, DjangoOutbox, DjangoRelay, Settings};
use sendoff_testkit::servers::{RabbitMq, Redis};
use tokio_util::sync::CancellationToken;

use self::process::{Drain, drain};
use self::replay::{Recorder, Recording};
use self::table::Table;
use crate::figure::{Figures, Goal};

/// Large batches for both, and one batch in flight at a time, so that the order of the table is kept.
const PYTHON_FLAGS: [&str; 4] = ["--batch-size", "1000", "--publish-concurrency", "1"];
const BATCH: u32 = 2000;
const QUEUE: &str = "bench";

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    if figures.wants(&["celery_redis_vs_python_relay"]) {
        let redis = Redis::start().await;
        compare(figures, "redis", &redis.url(), &["1"]).await?;
    }
    if figures.wants(&["celery_rabbitmq_vs_python_relay"]) {
        let rabbitmq = RabbitMq::start().await;
        compare(figures, "rabbitmq", &rabbitmq.url(), &["1", "0"]).await?;
    }
    Ok(())
}

/// `confirms` are settings of the Python relay; the goal applies to the first.
async fn compare(figures: &mut Figures, broker: &str, url: &str, confirms: &[&str]) -> Result<()> {
    let table = Table::create().await?;
    let mut ratios = vec![Vec::new(); confirms.len()];
    let recording = match broker {
        "rabbitmq" => Some(record(&table, url).await?),
        _ => None,
    };
    let (mut of_limit, mut limit_of_python) = (Vec::new(), Vec::new());
    let (mut cpu, mut rss) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for round in 1..=figures.rounds {
        queue::remove(url, QUEUE).await?;
        let ours = drain(&table, ours(&table, url)?).await?;
        told(figures, broker, round, "sendoff", &ours);
        cpu.0.push(ours.cpu_us);
        rss.0.push(ours.rss_mib);
        for (confirm, ratios) in confirms.iter().zip(&mut ratios) {
            queue::remove(url, QUEUE).await?;
            let theirs = drain(&table, python(&table, url, confirm)?).await?;
            told(
                figures,
                broker,
                round,
                &format!("python, confirm_publish {confirm}"),
                &theirs,
            );
            if *confirm == confirms[0] {
                cpu.1.push(theirs.cpu_us);
                rss.1.push(theirs.rss_mib);
            }
            ratios.push(ours.rate / theirs.rate);
            if let (Some(recording), true) = (&recording, *confirm == confirms[0]) {
                queue::remove(url, QUEUE).await?;
                let limit = recording.replay().await?;
                figures.progress(&format!(
                    "{broker}, round {round}, the same bytes without a relay: {limit:.0}/s"
                ));
                of_limit.push(ours.rate / limit);
                limit_of_python.push(limit / theirs.rate);
            }
        }
    }
    let name = |what: &str| format!("celery_{broker}_{what}");
    figures.report(&name("vs_python_relay"), "ratio", Goal::AtLeast(20.0), &ratios[0]);
    if let Some(unconfirmed) = ratios.get(1) {
        figures.report(&name("vs_python_relay_unconfirmed"), "ratio", Goal::None, unconfirmed);
    }
    if recording.is_some() {
        figures.report(&name("vs_limit"), "ratio", Goal::None, &of_limit);
        figures.report(&name("limit_vs_python_relay"), "ratio", Goal::None, &limit_of_python);
    }
    figures.report(&name("cpu_us"), "µs", Goal::None, &cpu.0);
    figures.report(&name("cpu_us_python"), "µs", Goal::None, &cpu.1);
    figures.report(&name("rss_mib"), "MiB", Goal::None, &rss.0);
    figures.report(&name("rss_mib_python"), "MiB", Goal::None, &rss.1);
    Ok(())
}

/// Records the bytes that our relay sends for the backlog, to send them again without a relay.
async fn record(table: &Table, url: &str) -> Result<Recording> {
    queue::remove(url, QUEUE).await?;
    let recorder = Recorder::start(url).await?;
    drain(table, ours(table, &recorder.url)?).await?;
    recorder.end(url)
}

fn told(figures: &Figures, broker: &str, round: usize, who: &str, drain: &Drain) {
    let Drain { rate, cpu_us, rss_mib } = drain;
    figures.progress(&format!(
        "{broker}, round {round}, {who}: {rate:.0}/s, {cpu_us:.1} µs of CPU per task, peak {rss_mib:.0} MiB"
    ));
}

fn python(table: &Table, broker: &str, confirm: &str) -> Result<Command> {
    let python = std::env::var_os("SENDOFF_TEST_DJANGO")
        .context("SENDOFF_TEST_DJANGO is not set: run `cargo xtask bench celery`")?;
    let mut command = Command::new(python);
    command
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../bin/sendoff/tests/django"))
        .args(["manage.py", "celery_outbox_relay"])
        .args(PYTHON_FLAGS)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SHOP_DATABASE", table.for_django()?)
        .env("SHOP_BROKER", broker)
        .env("SHOP_BACKEND", "cache+memory://")
        .env("SHOP_QUEUE", QUEUE)
        // Celery's default. Neither relay sends priorities, and a queue with priorities costs the broker a third more.
        .env("SHOP_MAX_PRIORITY", "")
        .env("SHOP_CONFIRM", confirm);
    Ok(command)
}

fn ours(table: &Table, broker: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("celery-relay")
        .env("SENDOFF_BENCH_DATABASE", &table.url)
        .env("SENDOFF_BENCH_BROKER", broker);
    Ok(command)
}

/// Relays until the process is killed, like `sendoff celery-relay`.
pub(crate) async fn relay() -> Result<()> {
    let database = Database::Postgres(std::env::var("SENDOFF_BENCH_DATABASE")?);
    let config = CeleryConfig {
        url: Some(sendoff_wire::Address::parse(&std::env::var("SENDOFF_BENCH_BROKER")?)?),
        default_queue: QUEUE.to_owned(),
        declare: Declare::Active,
        ..CeleryConfig::default()
    };
    let sink: Arc<dyn Sink> = Arc::new(CelerySink::new(&config)?);
    let settings = Settings {
        batch_size: BATCH,
        idle_time: Duration::from_millis(100),
        ..Settings::default()
    };
    let outbox = DjangoOutbox::new(&DjangoConfig::new(database))?;
    DjangoRelay::new(outbox, sink, settings)?
        .run(CancellationToken::new())
        .await?;
    Ok(())
}
