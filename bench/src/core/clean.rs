//! Whether those who emit notice that a relay cleans up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use sendoff::{Message, Outbox};
use sendoff_relay::Settings;

use crate::figure::{Figures, Goal, quantile};
use crate::subject::{Relays, Schema, connect};

const RATE: u64 = 500;
/// Every other second there is something to clean up, and in the seconds between there is not: what else the disk does
/// meets both alike.
const SECONDS: u64 = 32;
/// So much, which takes most of a second.
const OLD: i64 = 8_000;

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let name = "emit_p99_cleaning_vs_not";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let mut ratios = Vec::new();
    for round in 1..=figures.rounds.min(3) {
        let (quiet, cleaning) = emit().await?;
        figures.progress(&format!(
            "emit, round {round}: p99 {quiet:.2} ms, {cleaning:.2} ms while the relay cleans up"
        ));
        ratios.push(cleaning / quiet);
    }
    figures.report(name, "ratio", Goal::AtMost(1.2), &ratios);
    Ok(())
}

/// The 99th of a hundred times that an emit with its commit takes, in milliseconds: while there is nothing to clean up, and
/// while there is.
async fn emit() -> Result<(f64, f64)> {
    let schema = Schema::fresh("bench_clean").await?;
    let settings = Settings {
        clean: Duration::from_millis(100),
        ..Settings::default()
    };
    let relays = Relays::start(vec![Arc::new(schema.store(false)?)], settings).await?;
    let outbox = Outbox::builder().names(schema.names.clone()).build();
    let mut client = connect().await?;
    // The windows of these keys end in the seconds with an odd number.
    let fill = "INSERT INTO outbox_dedup (topic, idempotency_key, id, until)
         SELECT 'bench.topic', second || '-' || n, gen_random_uuid(), clock.start + second * interval '1 second'
         FROM (SELECT clock_timestamp() + interval '5 seconds' AS start) AS clock,
             generate_series(1, $1::bigint - 1, 2) AS second, generate_series(1, $2::bigint) AS n";
    let filling = Instant::now();
    let seconds = i64::try_from(SECONDS)?;
    schema
        .client
        .execute(&schema.names.render(fill), &[&seconds, &OLD])
        .await?;
    schema.client.batch_execute("CHECKPOINT").await?;
    tokio::time::sleep_until((filling + Duration::from_secs(5)).into()).await;
    let (begun, mut times) = (Instant::now(), [Vec::new(), Vec::new()]);
    let mut tick = tokio::time::interval(Duration::from_secs_f64(1.0 / RATE as f64));
    while begun.elapsed() < Duration::from_secs(SECONDS) {
        tick.tick().await;
        let since = Instant::now();
        let tx = client.transaction().await?;
        let message = Message::bytes("bench.topic", "application/octet-stream", vec![7; 256]);
        outbox.emit(&tx, message).await?;
        tx.commit().await?;
        let second = since.duration_since(begun).as_secs();
        // The first two warm caches and connections up.
        if second >= 2 {
            times[usize::from(second % 2 == 1)].push(since.elapsed().as_secs_f64() * 1e3);
        }
    }
    let left = "SELECT count(*) FROM outbox_dedup";
    let left: i64 = schema.client.query_one(&schema.names.render(left), &[]).await?.get(0);
    anyhow::ensure!(left < OLD, "{left} keys were not cleaned up in their second");
    relays.stop().await?;
    Ok((quantile(&times[0], 0.99), quantile(&times[1], 0.99)))
}
