//! Whether those who emit notice that a relay cleans up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use sendoff::{Message, Outbox};
use sendoff_relay::Settings;

use crate::figure::{Figures, Goal, quantile};
use crate::subject::{Relays, Schema, connect};

const RATE: u64 = 500;
/// Long enough for some forty emits above the 99th of a hundred.
const SECONDS: u64 = 8;
/// More than a relay cleans up in that time.
const OLD: i64 = 40_000;

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let name = "emit_p99_cleaning_vs_not";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let mut ratios = Vec::new();
    for round in 1..=figures.rounds {
        // They take turns in going first: the disk itself differs from one minute to the next.
        let (quiet, cleaning) = if round % 2 == 0 {
            let quiet = emit(false).await?;
            (quiet, emit(true).await?)
        } else {
            let cleaning = emit(true).await?;
            (emit(false).await?, cleaning)
        };
        figures.progress(&format!(
            "emit, round {round}: p99 {quiet:.2} ms, {cleaning:.2} ms while the relay cleans up"
        ));
        ratios.push(cleaning / quiet);
    }
    figures.report(name, "ratio", Goal::AtMost(1.2), &ratios);
    Ok(())
}

/// The 99th of a hundred times that an emit with its commit takes, in milliseconds, beside a relay that cleans up old keys all
/// the time, or that has none to clean up. There are as many keys either way.
async fn emit(cleaning: bool) -> Result<f64> {
    let schema = Schema::fresh("bench_clean").await?;
    let fill = "INSERT INTO outbox_dedup (topic, idempotency_key, id, until)
         SELECT 'bench.topic', n::text, gen_random_uuid(), now() + CASE WHEN $2 THEN interval '0' ELSE interval '1 day' END
         FROM generate_series(1, $1::bigint) AS n";
    schema
        .client
        .execute(&schema.names.render(fill), &[&OLD, &cleaning])
        .await?;
    schema.client.batch_execute("CHECKPOINT").await?;
    let settings = Settings {
        clean: Duration::from_millis(100),
        ..Settings::default()
    };
    let relays = Relays::start(vec![Arc::new(schema.store(false)?)], settings).await?;
    let outbox = Outbox::builder().names(schema.names.clone()).build();
    let mut client = connect().await?;
    let (begun, mut times) = (Instant::now(), Vec::new());
    let mut tick = tokio::time::interval(Duration::from_secs_f64(1.0 / RATE as f64));
    while begun.elapsed() < Duration::from_secs(SECONDS) {
        tick.tick().await;
        let since = Instant::now();
        let tx = client.transaction().await?;
        let message = Message::bytes("bench.topic", "application/octet-stream", vec![7; 256]);
        outbox.emit(&tx, message).await?;
        tx.commit().await?;
        // The first warms caches and connections up.
        if since.duration_since(begun) > Duration::from_secs(1) {
            times.push(since.elapsed().as_secs_f64() * 1e3);
        }
    }
    relays.stop().await?;
    let left = "SELECT count(*) FROM outbox_dedup";
    let left: i64 = schema.client.query_one(&schema.names.render(left), &[]).await?.get(0);
    let done = if cleaning { 1..OLD } else { OLD..OLD + 1 };
    anyhow::ensure!(done.contains(&left), "{left} of {OLD} keys are left");
    Ok(quantile(&times, 0.99))
}
