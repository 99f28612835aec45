//! Group `sinks`: a backlog in PostgreSQL is delivered to a broker, against a no-op sink and the broker's client alone.

mod nats;
mod rabbitmq;
mod redis;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use async_trait::async_trait;
use sendoff::Sink;
use sendoff::store::RelayStore;
use sendoff_relay::Settings;

use crate::busy::{self, Moment};
use crate::core::lanes;
use crate::cpu;
use crate::figure::{Figures, Goal};
use crate::subject::{Relays, Schema};

const BACKLOG: u64 = 100_000;
/// Two relays have at most four batches in flight each. The bare publishers have as many.
const PUBLISHERS: u64 = 8;
const BATCH: usize = 500;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    if figures.wants(&["rabbitmq_vs_limit", "rabbitmq_cpu_us"]) {
        rabbitmq::measure(figures).await?;
    }
    if figures.wants(&["redis_vs_limit", "redis_cpu_us"]) {
        redis::measure(figures).await?;
    }
    if figures.wants(&["nats_vs_limit", "nats_cpu_us"]) {
        nats::measure(figures).await?;
    }
    Ok(())
}

/// A broker under measurement.
#[async_trait]
trait Broker {
    /// Its name in the figures.
    const NAME: &'static str;

    /// Deletes all messages.
    async fn empty(&self) -> Result<()>;

    /// How many messages it has.
    async fn count(&self) -> Result<u64>;

    fn sink(&self) -> Result<Arc<dyn Sink>>;

    /// Publishes `count` messages like those of the backlog with the client alone, confirmed, a batch at a time.
    async fn publish_bare(&self, count: u64) -> Result<()>;
}

async fn compare(figures: &mut Figures, broker: &impl Broker, name: &str, cpu_name: &str) -> Result<()> {
    let (mut ratios, mut costs) = (Vec::new(), Vec::new());
    for round in 1..=figures.rounds {
        let begun = Moment::now();
        broker.empty().await?;
        let measured = async { anyhow::Ok((lanes().await?, bare(broker).await?, relayed(broker).await?)) };
        let (no_op, bare, (ours, cost)) = match measured.await {
            Ok(measured) => measured,
            // Whoever gets no processor misses deadlines: that says nothing about the code.
            Err(error) => {
                let Some(others) = busy::since(begun) else {
                    return Err(error);
                };
                let why = busy::words(others);
                figures.progress(&format!("{name}, round {round} is left out: {error:#}; {why}"));
                broker.empty().await?;
                continue;
            }
        };
        broker.empty().await?;
        figures.progress(&format!(
            "{name}, round {round}: relayed {ours:.0}/s ({cost:.1} µs of CPU per message), bare {bare:.0}/s, no-op sink {no_op:.0}/s"
        ));
        ratios.push(ours / bare.min(no_op));
        costs.push(cost);
    }
    figures.report(name, "ratio", Goal::AtLeast(0.8), &ratios);
    figures.report(cpu_name, "µs", Goal::None, &costs);
    Ok(())
}

/// Messages per second with the client alone.
async fn bare<B: Broker>(broker: &B) -> Result<f64> {
    let begun = Instant::now();
    let each = (0..PUBLISHERS).map(|_| broker.publish_bare(BACKLOG / PUBLISHERS));
    futures::future::try_join_all(each).await?;
    let rate = BACKLOG as f64 / begun.elapsed().as_secs_f64();
    check(broker, B::NAME).await?;
    broker.empty().await?;
    Ok(rate)
}

/// Messages per second through the outbox, and the relays' processor time per message.
async fn relayed<B: Broker>(broker: &B) -> Result<(f64, f64)> {
    let mut schema = Schema::fresh("bench_sinks").await?;
    let stores: Vec<Arc<dyn RelayStore>> = vec![Arc::new(schema.store(false)?), Arc::new(schema.store(false)?)];
    let relays = Relays::with_sink(stores, Settings::default(), broker.sink()?, Arc::default())?;
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    let fill = schema.fill_sql(BACKLOG);
    let tx = schema.client.transaction().await?;
    tx.batch_execute(&fill).await?;
    tx.commit().await?;
    let (begun, before) = (Instant::now(), cpu::used()?);
    relays.wake();
    if let Err(error) = relays.wait_until_settled(BACKLOG).await {
        relays.kill();
        return Err(error);
    }
    let rate = BACKLOG as f64 / begun.elapsed().as_secs_f64();
    let cost = (cpu::used()? - before).as_secs_f64() * 1e6 / BACKLOG as f64;
    relays.stop().await?;
    // A delivery that is moved to the waiting table also counts as settled.
    let waiting = "SELECT count(*), min(last_error) FROM outbox_waiting";
    let waiting = schema.client.query_one(&schema.names.render(waiting), &[]).await?;
    let (waiting, why): (i64, Option<String>) = (waiting.get(0), waiting.get(1));
    anyhow::ensure!(
        waiting == 0,
        "{} was down or refused deliveries, and {waiting} deliveries wait: {}",
        B::NAME,
        why.unwrap_or_default()
    );
    check(broker, B::NAME).await?;
    Ok((rate, cost))
}

/// Fails unless all messages arrived.
async fn check(broker: &impl Broker, name: &str) -> Result<()> {
    let count = broker.count().await?;
    anyhow::ensure!(count == BACKLOG, "{name} has {count} of {BACKLOG} messages");
    Ok(())
}

/// Splits a number of messages into batches.
fn batches(count: u64) -> impl Iterator<Item = usize> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    (0..count.div_ceil(BATCH)).map(move |at| BATCH.min(count - at * BATCH))
}

/// The headers of a message of the backlog.
fn fields() -> [(&'static str, String); 3] {
    [
        ("sendoff-id", sendoff::Uuid::new_v4().to_string()),
        ("sendoff-topic", "bench.topic".to_owned()),
        ("sendoff-created-at", "2026-01-31T12:00:00.000000Z".to_owned()),
    ]
}
