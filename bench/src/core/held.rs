//! Draining while another client keeps a transaction open.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use sendoff::{Message, Outbox};
use sendoff_relay::Settings;

use crate::figure::{Figures, Goal};
use crate::subject::{Relays, Schema, connect};

const RATE: u64 = 4000;
const SECONDS: u64 = 30;

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let cases = [
        (
            "held_snapshot_drain_vs_offered",
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox_message",
        ),
        (
            "held_writer_drain_vs_offered",
            "BEGIN; INSERT INTO outbox_message (topic, payload) VALUES ('bench.topic', 'held')",
        ),
    ];
    let mut ratios = [Vec::new(), Vec::new()];
    let mut backlogs = [Vec::new(), Vec::new()];
    // Each takes half a minute, so there are fewer rounds than elsewhere.
    for round in 1..=figures.rounds.min(3) {
        for (at, (name, holder)) in cases.iter().enumerate() {
            if !figures.wants(&[name]) {
                continue;
            }
            let (ratio, backlog) = offer(holder).await?;
            figures.progress(&format!("{name}, round {round}: {ratio:.3}, {backlog} left at the end"));
            ratios[at].push(ratio);
            backlogs[at].push(backlog as f64);
        }
    }
    for (at, (name, _)) in cases.iter().enumerate() {
        if figures.wants(&[name]) {
            figures.report(name, "ratio", Goal::AtLeast(0.95), &ratios[at]);
            let left = name.replace("drain_vs_offered", "backlog");
            figures.report(&left, "messages", Goal::AtMost(1000.0), &backlogs[at]);
        }
    }
    Ok(())
}

async fn offer(holder: &str) -> Result<(f64, u64)> {
    let schema = Schema::fresh("bench_held").await?;
    let relays = Relays::start(vec![Arc::new(schema.store(false)?)], Settings::default()).await?;
    let held = connect().await?;
    held.batch_execute(&schema.names.render(holder)).await?;
    let outbox = Outbox::builder().names(schema.names.clone()).build();
    let mut client = connect().await?;
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    let at_once = RATE / 100;
    let mut offered = 0;
    for _ in 0..SECONDS * 100 {
        tick.tick().await;
        let messages = (0..at_once).map(|_| Message::bytes("bench.topic", "application/octet-stream", vec![7; 256]));
        let tx = client.transaction().await?;
        let _ = outbox.emit_many(&tx, messages).await?;
        tx.commit().await?;
        offered += at_once;
    }
    let delivered = relays.sink.count.load(Ordering::Relaxed);
    held.batch_execute("ROLLBACK").await?;
    relays.stop().await?;
    Ok((delivered as f64 / offered as f64, offered.saturating_sub(delivered)))
}
