//! How many bytes a delivery adds to the write-ahead log.

use std::sync::Arc;

use anyhow::Result;
use futures::future::try_join_all;
use sendoff::{Message, Outbox};
use sendoff_relay::Settings;

use crate::figure::{Figures, Goal};
use crate::subject::{Relays, Schema, connect};

const MESSAGES: u64 = 20_000;

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let name = "postgres_wal_vs_insert";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let mut ratios = Vec::new();
    for round in 1..=figures.rounds.min(3) {
        let schema = Schema::fresh("bench_wal").await?;
        schema.client.batch_execute("CHECKPOINT").await?;
        let before = position(&schema).await?;
        emit(&schema).await?;
        let emitted = position(&schema).await?;
        let relays = Relays::start(vec![Arc::new(schema.store(false)?)], Settings::default()).await?;
        relays.wait_until_settled(MESSAGES).await?;
        let delivered = position(&schema).await?;
        relays.stop().await?;
        let per_message = |bytes: f64| bytes / MESSAGES as f64;
        figures.progress(&format!(
            "wal, round {round}: insert {:.0} B, deliver {:.0} B per message",
            per_message(emitted - before),
            per_message(delivered - emitted)
        ));
        ratios.push((delivered - before) / (emitted - before));
    }
    figures.report(name, "ratio", Goal::AtMost(1.25), &ratios);
    Ok(())
}

/// One message per transaction, on four connections.
async fn emit(schema: &Schema) -> Result<()> {
    let outbox = Outbox::builder().names(schema.names.clone()).build();
    let worker = |outbox: Outbox| async move {
        let mut client = connect().await?;
        for _ in 0..MESSAGES / 4 {
            let tx = client.transaction().await?;
            let _ = outbox
                .emit(
                    &tx,
                    Message::bytes("bench.topic", "application/octet-stream", vec![7; 256]),
                )
                .await?;
            tx.commit().await?;
        }
        anyhow::Ok(())
    };
    try_join_all((0..4).map(|_| worker(outbox.clone()))).await?;
    Ok(())
}

async fn position(schema: &Schema) -> Result<f64> {
    let row = schema
        .client
        .query_one(
            "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8",
            &[],
        )
        .await?;
    Ok(row.get(0))
}
