//! The drain rate, against plain SQL.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use sendoff::store::RelayStore;
use sendoff_relay::Settings;
use tokio_postgres::Client;

use crate::figure::{Figures, Goal};
use crate::subject::{Relays, Schema, connect};

pub(crate) const BACKLOG: u64 = 100_000;

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let names = ["postgres_drain_vs_raw_delete", "postgres_drain_vs_row_lease"];
    if !figures.wants(&names) {
        return Ok(());
    }
    let (mut against_delete, mut against_lease) = (Vec::new(), Vec::new());
    for round in 1..=figures.rounds {
        let ours = lanes().await?;
        let delete = raw_delete().await?;
        let lease = row_lease().await?;
        figures.progress(&format!(
            "drain, round {round}: lanes {ours:.0}/s, raw delete {delete:.0}/s, row lease {lease:.0}/s"
        ));
        against_delete.push(ours / delete);
        against_lease.push(ours / lease);
    }
    figures.report(names[0], "ratio", Goal::AtLeast(1.25), &against_delete);
    figures.report(names[1], "ratio", Goal::AtLeast(3.0), &against_lease);
    Ok(())
}

/// Messages per second with two relays. The whole backlog becomes visible when its transaction commits.
pub(crate) async fn lanes() -> Result<f64> {
    let mut schema = Schema::fresh("bench_lanes").await?;
    let stores: Vec<Arc<dyn RelayStore>> = vec![Arc::new(schema.store(false)?), Arc::new(schema.store(false)?)];
    let relays = Relays::start(stores, Settings::default()).await?;
    let fill = schema.fill_sql(BACKLOG);
    let tx = schema.client.transaction().await?;
    tx.batch_execute(&fill).await?;
    tx.commit().await?;
    // The commit writes the backlog's WAL to disk. The clocks of the baselines also start after their commit.
    let begun = Instant::now();
    relays.wake();
    // Settled, not only sent.
    relays.wait_until_settled(BACKLOG).await?;
    let rate = BACKLOG as f64 / begun.elapsed().as_secs_f64();
    anyhow::ensure!(
        schema.ready().await? == 0,
        "rows are left that were reported as settled"
    );
    relays.stop().await?;
    Ok(rate)
}

async fn table(ddl: &str, name: &str) -> Result<Client> {
    let client = connect().await?;
    client.batch_execute(&format!("DROP TABLE IF EXISTS {name}")).await?;
    client.batch_execute(ddl).await?;
    let fill = format!(
        "INSERT INTO {name} (message_id, topic, payload)
         SELECT gen_random_uuid(), 'bench.topic', decode(repeat(md5(n::text), 16), 'hex') FROM generate_series(1, {BACKLOG}) AS n"
    );
    client.batch_execute(&fill).await?;
    Ok(client)
}

async fn raw_delete() -> Result<f64> {
    let _keep = table(include_str!("../../sql/raw_delete_table.sql"), "bench_raw").await?;
    let begun = Instant::now();
    let worker = async || {
        let client = connect().await?;
        let statement = client.prepare(include_str!("../../sql/raw_delete.sql")).await?;
        let mut taken = 0;
        loop {
            let rows = client.query(&statement, &[]).await?;
            if rows.is_empty() {
                return anyhow::Ok(taken);
            }
            taken += touch(&rows);
        }
    };
    let (one, two) = tokio::try_join!(worker(), worker())?;
    anyhow::ensure!(one + two == BACKLOG, "the baseline drained {one} + {two}");
    Ok(BACKLOG as f64 / begun.elapsed().as_secs_f64())
}

pub(crate) async fn row_lease() -> Result<f64> {
    let _keep = table(include_str!("../../sql/row_lease_table.sql"), "bench_lease").await?;
    let begun = Instant::now();
    let worker = async |owner: &'static str| {
        let client = connect().await?;
        let claim = client.prepare(include_str!("../../sql/row_lease_claim.sql")).await?;
        let settle = client.prepare(include_str!("../../sql/row_lease_settle.sql")).await?;
        let mut taken = 0;
        loop {
            let rows = client.query(&claim, &[&owner]).await?;
            if rows.is_empty() {
                return anyhow::Ok(taken);
            }
            let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
            taken += touch(&rows);
            client.execute(&settle, &[&ids, &owner]).await?;
        }
    };
    let (one, two) = tokio::try_join!(worker("one"), worker("two"))?;
    anyhow::ensure!(one + two == BACKLOG, "the baseline drained {one} + {two}");
    Ok(BACKLOG as f64 / begun.elapsed().as_secs_f64())
}

/// Reads the fields that a publisher would read.
fn touch(rows: &[tokio_postgres::Row]) -> u64 {
    rows.iter()
        .filter(|row| !row.get::<_, &[u8]>(3).is_empty() && !row.get::<_, &str>(2).is_empty())
        .count() as u64
}
