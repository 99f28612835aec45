//! Whether those who emit notice that a relay cleans up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use sendoff::{Message, Outbox};
use sendoff_relay::Settings;

use crate::figure::{Figures, Goal, quantile};
use crate::subject::{Relays, Schema, connect};

const RATE: u64 = 500;
const SECONDS: u64 = 6;
/// More than can be cleaned up meanwhile.
const OLD: i64 = 200_000;

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let name = "emit_p99_cleaning_vs_not";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let mut ratios = Vec::new();
    for round in 1..=figures.rounds.min(3) {
        let quiet = emit(0).await?;
        let cleaning = emit(OLD).await?;
        figures.progress(&format!(
            "emit, round {round}: p99 {quiet:.2} ms, {cleaning:.2} ms while the relay cleans up"
        ));
        ratios.push(cleaning / quiet);
    }
    figures.report(name, "ratio", Goal::AtMost(1.2), &ratios);
    Ok(())
}

/// The 99th of a hundred times that an emit with its commit takes, in milliseconds.
async fn emit(old: i64) -> Result<f64> {
    let schema = Schema::fresh("bench_clean").await?;
    let fill = "INSERT INTO outbox_dedup (topic, idempotency_key, id, until)
         SELECT 'bench.topic', n::text, gen_random_uuid(), now() - interval '1 day' FROM generate_series(1, $1::bigint) AS n";
    schema.client.execute(&schema.names.render(fill), &[&old]).await?;
    schema.client.batch_execute("CHECKPOINT").await?;
    let settings = Settings {
        clean: Duration::from_millis(100),
        ..Settings::default()
    };
    let relays = Relays::start(vec![Arc::new(schema.store(false)?)], settings).await?;
    let outbox = Outbox::builder().names(schema.names.clone()).build();
    let mut client = connect().await?;
    let mut tick = tokio::time::interval(Duration::from_secs_f64(1.0 / RATE as f64));
    let mut times = Vec::new();
    for _ in 0..RATE * SECONDS {
        tick.tick().await;
        let begun = Instant::now();
        let tx = client.transaction().await?;
        let message = Message::bytes("bench.topic", "application/octet-stream", vec![7; 256]);
        outbox.emit(&tx, message).await?;
        tx.commit().await?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let left = "SELECT count(*) FROM outbox_dedup";
    let left: i64 = schema.client.query_one(&schema.names.render(left), &[]).await?.get(0);
    anyhow::ensure!(
        old == 0 || (left > 0 && left < old),
        "{left} of {old} were left to clean up"
    );
    relays.stop().await?;
    // The first second warms caches and connections up.
    Ok(quantile(&times[RATE as usize..], 0.99))
}
