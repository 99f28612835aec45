//! `emit_many` against one emit per message.

use std::time::Instant;

use anyhow::Result;
use sendoff::{Message, Outbox};

use crate::figure::{Figures, Goal};
use crate::subject::{Schema, connect};

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let name = "emit_many_1000_vs_row_by_row";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let schema = Schema::fresh("bench_emit").await?;
    let outbox = Outbox::builder().names(schema.names.clone()).build();
    let messages = || (0..1000).map(|_| Message::bytes("bench.topic", "application/octet-stream", vec![7; 256]));
    let mut client = connect().await?;
    let mut ratios = Vec::new();
    for _ in 0..figures.rounds {
        let begun = Instant::now();
        let tx = client.transaction().await?;
        for message in messages() {
            let _ = outbox.emit(&tx, message).await?;
        }
        tx.commit().await?;
        let row_by_row = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let tx = client.transaction().await?;
        let _ = outbox.emit_many(&tx, messages()).await?;
        tx.commit().await?;
        ratios.push(row_by_row / begun.elapsed().as_secs_f64());
    }
    figures.report(name, "ratio", Goal::AtLeast(10.0), &ratios);
    Ok(())
}
