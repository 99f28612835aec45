//! Whether emits get slower while a relay cleans up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use sendoff::{Message, Outbox};
use sendoff_relay::Settings;
use sendoff_store_postgres::PostgresStore;

use crate::figure::{Figures, Goal, quantile};
use crate::subject::{Relays, Schema, connect};

const RATE: u64 = 500;
/// Long enough for about forty emits above the 99th percentile.
const SECONDS: u64 = 8;
/// More than a relay cleans up in that time, together with the delivered messages.
const KEYS: i64 = 40_000;
/// About half of what it cleans up in that time.
const DELIVERED: i64 = 10_000;
const RETENTION: Duration = Duration::from_secs(3 * 24 * 60 * 60);

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let name = "emit_p99_cleaning_vs_not";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let mut ratios = Vec::new();
    for round in 1..=figures.rounds {
        // They alternate in going first, because the speed of the disk varies from minute to minute.
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

/// The 99th percentile of the time for an emit with its commit, in milliseconds, beside a relay that cleans up
/// constantly, or that has nothing to clean up. The number of keys and delivered messages is the same in both cases.
async fn emit(cleaning: bool) -> Result<f64> {
    let schema = Schema::fresh("bench_clean").await?;
    fill(&schema, cleaning).await?;
    let settings = Settings {
        clean: Duration::from_millis(100),
        ..Settings::default()
    };
    let mut config = schema.config(false)?;
    config.settings.retention = Some(RETENTION);
    let relays = Relays::start(vec![Arc::new(PostgresStore::new(config)?)], settings).await?;
    let outbox = Outbox::builder().names(schema.names.clone()).build();
    let mut client = connect().await?;
    let (begun, mut times) = (Instant::now(), Vec::new());
    let mut tick = tokio::time::interval(Duration::from_secs_f64(1.0 / RATE as f64));
    while begun.elapsed() < Duration::from_secs(SECONDS) {
        tick.tick().await;
        let since = Instant::now();
        let tx = client.transaction().await?;
        let message = Message::bytes("bench.topic", "application/octet-stream", vec![7; 256]);
        let _ = outbox.emit(&tx, message).await?;
        tx.commit().await?;
        // The first second warms up caches and connections.
        if since.duration_since(begun) > Duration::from_secs(1) {
            times.push(since.elapsed().as_secs_f64() * 1e3);
        }
    }
    relays.stop().await?;
    let left = "SELECT (SELECT count(*) FROM outbox_dedup), (SELECT count(*) FROM outbox_delivered WHERE topic = 'bench.kept')";
    let left = schema.client.query_one(&schema.names.render(left), &[]).await?;
    let left: (i64, i64) = (left.get(0), left.get(1));
    // Delivered messages are cleaned up first. If some keys are gone and some remain, the relay always had work.
    let as_meant = match cleaning {
        true => left.1 == 0 && (1..KEYS).contains(&left.0),
        false => left == (KEYS, DELIVERED),
    };
    anyhow::ensure!(
        as_meant,
        "{left:?} of {KEYS} keys and {DELIVERED} delivered messages are left"
    );
    Ok(quantile(&times, 0.99))
}

async fn fill(schema: &Schema, old: bool) -> Result<()> {
    // Create the partitions of these days now: it is skipped when many rows are outside of them.
    let days = "SELECT outbox_clean_delivered(interval '3 days', 0, false)";
    schema.client.batch_execute(&schema.names.render(days)).await?;
    let keys = "INSERT INTO outbox_dedup (topic, idempotency_key, id, until)
         SELECT 'bench.topic', n::text, gen_random_uuid(), now() + CASE WHEN $2 THEN interval '0' ELSE interval '1 day' END
         FROM generate_series(1, $1::bigint) AS n";
    let delivered = "INSERT INTO outbox_delivered (delivered_at, created_at, lane, seq, id, topic, payload)
         SELECT now() - CASE WHEN $2 THEN interval '4 days' ELSE interval '2 days' END, now(), n % 64, n, gen_random_uuid(),
             'bench.kept', decode(repeat(md5(n::text), 16), 'hex')
         FROM generate_series(1, $1::bigint) AS n";
    for (sql, count) in [(keys, &KEYS), (delivered, &DELIVERED)] {
        schema.client.execute(&schema.names.render(sql), &[count, &old]).await?;
    }
    Ok(schema.client.batch_execute("CHECKPOINT").await?)
}
