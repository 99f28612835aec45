//! The latency from commit to sink.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use sendoff::{Message, Outbox, Outcome, Outgoing, Sink, Uuid};
use sendoff_relay::Settings;

use crate::figure::{Figures, Goal, median, quantile};
use crate::plot;
use crate::subject::{Relays, Schema, connect};

const RATE: u64 = 300;
const SECONDS: u64 = 6;

/// Records when each message arrived.
#[derive(Default)]
struct Arrivals(Mutex<HashMap<Uuid, Instant>>);

#[async_trait]
impl Sink for Arrivals {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let now = Instant::now();
        let mut arrivals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.extend(batch.iter().map(|outgoing| (outgoing.id, now)));
        vec![Outcome::Delivered; batch.len()]
    }
}

struct Latencies {
    commit: Vec<f64>,
    to_sink: Vec<f64>,
}

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let names = ["commit_to_sink_median_vs_commit", "commit_to_sink_p99_ms_polling"];
    if !figures.wants(&names) {
        return Ok(());
    }
    let (mut ratios, mut p99s) = (Vec::new(), Vec::new());
    for round in 1..=figures.rounds.min(3) {
        let wakes_in_process = offer(true).await?;
        let polled = offer(false).await?;
        let (commit, to_sink) = (median(&wakes_in_process.commit), median(&wakes_in_process.to_sink));
        figures.progress(&format!(
            "latency, round {round}: commit {commit:.2} ms, to sink {to_sink:.2} ms woken, {:.2} ms polled (p99 {:.1})",
            median(&polled.to_sink),
            quantile(&polled.to_sink, 0.99)
        ));
        if round == 1 {
            figures.draw(|folder| plot::latencies(folder, &wakes_in_process.to_sink, &polled.to_sink))?;
        }
        ratios.push(to_sink / commit);
        p99s.push(quantile(&polled.to_sink, 0.99));
    }
    figures.report(names[0], "ratio", Goal::AtMost(2.3), &ratios);
    figures.report(names[1], "ms", Goal::AtMost(25.0), &p99s);
    Ok(())
}

/// Emits at a steady rate, one message per transaction.
async fn offer(wake: bool) -> Result<Latencies> {
    let schema = Schema::fresh("bench_latency").await?;
    let arrivals = Arc::new(Arrivals::default());
    let relays = Relays::with_sink(
        vec![Arc::new(schema.store(false)?)],
        Settings::default(),
        arrivals.clone(),
        Arc::default(),
    )?;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let outbox = Outbox::builder().names(schema.names.clone()).build();
    let mut client = connect().await?;
    let mut commits: Vec<(Uuid, Instant, f64)> = Vec::new();
    let mut tick = tokio::time::interval(Duration::from_secs_f64(1.0 / RATE as f64));
    for _ in 0..RATE * SECONDS {
        tick.tick().await;
        let tx = client.transaction().await?;
        let message = Message::bytes("bench.topic", "application/octet-stream", vec![7; 256]);
        let id = outbox.emit(&tx, message).await?.id();
        let sent = Instant::now();
        tx.commit().await?;
        commits.push((id, sent, sent.elapsed().as_secs_f64() * 1e3));
        if wake {
            relays.wake();
        }
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    relays.stop().await?;
    let arrivals = arrivals.0.lock().unwrap_or_else(PoisonError::into_inner);
    anyhow::ensure!(
        arrivals.len() == commits.len(),
        "{} of {} messages arrived",
        arrivals.len(),
        commits.len()
    );
    // The first second warms up caches and connections.
    let warm = &commits[RATE as usize..];
    let to_sink = warm
        .iter()
        .filter_map(|(id, sent, _)| Some(arrivals.get(id)?.duration_since(*sent).as_secs_f64() * 1e3));
    Ok(Latencies {
        commit: warm.iter().map(|(_, _, commit)| *commit).collect(),
        to_sink: to_sink.collect(),
    })
}
