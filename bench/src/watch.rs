//! Group `watch`: the cost of metrics, traces and logs. A drain into a no-op sink with all of them on, over the same
//! with all of them off. Each runs in its own process, because a log is started once per process.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use sendoff::Waker;
use sendoff::store::{MigrateStore, RelayStore};
use sendoff_opentelemetry::{PublishSpans, SampleLinked};
use sendoff_relay::{Relay, RelayBuilder};
use sendoff_watch::{StatsdConfig, StatsdTarget, Surroundings, Watch, WatchConfig};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_util::sync::CancellationToken;

use crate::figure::{Figures, Goal};
use crate::subject::{Counting, Schema};

/// A second or two of work: long enough for metrics to be scraped and sent meanwhile.
const BACKLOG: u64 = 300_000;
/// The share of messages without a trace that get one.
const SAMPLED: f64 = 0.01;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let name = "watched_vs_bare";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let mut ratios = Vec::new();
    for round in 1..=figures.rounds {
        // The first one meets a colder server, so they alternate.
        let (bare, watched) = if round % 2 == 1 {
            let bare = rate_of("bare-drain").await?;
            (bare, rate_of("watched-drain").await?)
        } else {
            let watched = rate_of("watched-drain").await?;
            (rate_of("bare-drain").await?, watched)
        };
        figures.progress(&format!("round {round}: bare {bare:.0}/s, watched {watched:.0}/s"));
        ratios.push(watched / bare);
    }
    figures.report(name, "ratio", Goal::AtLeast(0.95), &ratios);
    Ok(())
}

async fn rate_of(group: &str) -> Result<f64> {
    let mut child = tokio::process::Command::new(std::env::current_exe()?)
        .arg(group)
        .stdout(Stdio::piped())
        // Its log.
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().context("no output")?;
    let line = BufReader::new(stdout).lines().next_line().await?;
    child.wait().await?;
    Ok(line.context("the draining process printed no rate")?.trim().parse()?)
}

/// The draining process. Prints its rate.
pub(crate) async fn drain(watched: bool) -> Result<()> {
    let mut schema = Schema::fresh("bench_watch").await?;
    let sink = Arc::new(Counting::default());
    let stop = CancellationToken::new();
    let (mut wakers, mut running, mut watching) = (Vec::new(), Vec::new(), Vec::new());
    let (mut watch, spans) = (Watch::new(config()), spans());
    if watched {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
            .with_writer(std::io::stderr)
            .json()
            .init();
    }
    for number in 0..2 {
        let store = Arc::new(schema.store(false)?);
        let waker = Waker::new();
        let mut relay: RelayBuilder = Relay::builder(store.clone())
            .sink("nowhere", sink.clone())
            .route("*".parse()?, ["nowhere"])
            .waker(waker.clone());
        let subject = watched.then(|| watch.subject(&format!("relay-{number}")));
        if let Some(subject) = &subject {
            relay = relay.observer(subject.clone()).middleware(spans.clone());
        }
        let relay = relay.build()?;
        if let Some(subject) = subject {
            let (store, migrate): (Arc<dyn RelayStore>, Arc<dyn MigrateStore>) = (store.clone(), store);
            let surroundings = Surroundings {
                store,
                migrate: Some(migrate),
                sinks: relay.sinks(),
            };
            watching.push((subject, surroundings));
        }
        wakers.push(waker);
        running.push(tokio::spawn(relay.run(stop.clone())));
    }
    let _watching = if watched {
        Some(watch.start(watching).await?)
    } else {
        None
    };
    if watched {
        // Far more often than real scrapes.
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                std::hint::black_box(watch.render());
            }
        });
    }
    // Wait until the relays have shared the lanes.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let fill = schema.fill_sql(BACKLOG);
    let tx = schema.client.transaction().await?;
    tx.batch_execute(&fill).await?;
    tx.commit().await?;
    let begun = Instant::now();
    wakers.iter().for_each(Waker::wake);
    while sink.count.load(Ordering::Relaxed) < BACKLOG || schema.ready().await? > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        anyhow::ensure!(
            begun.elapsed() < Duration::from_secs(120),
            "the drain did not finish within 120 s"
        );
    }
    println!("{}", BACKLOG as f64 / begun.elapsed().as_secs_f64());
    stop.cancel();
    for relay in running {
        relay.await??;
    }
    Ok(())
}

fn config() -> WatchConfig {
    WatchConfig {
        listen: Some("127.0.0.1:0".to_owned()),
        statsd: Some(StatsdConfig {
            target: StatsdTarget::Udp {
                host: "127.0.0.1".to_owned(),
                port: 9,
            },
            prefix: "sendoff".to_owned(),
            topic_tag: "topic".to_owned(),
            tags: Vec::new(),
            drop_in: false,
        }),
        ..WatchConfig::default()
    }
}

/// Spans as a relay makes them, without a collector.
fn spans() -> Arc<PublishSpans<opentelemetry_sdk::trace::SdkTracer>> {
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(Nowhere)
        .with_sampler(SampleLinked(Sampler::ParentBased(Box::new(Sampler::AlwaysOn))))
        .build();
    Arc::new(PublishSpans::new(provider.tracer("sendoff")).roots(SAMPLED))
}

#[derive(Debug)]
struct Nowhere;

impl SpanExporter for Nowhere {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        std::hint::black_box(batch);
        Ok(())
    }
}
