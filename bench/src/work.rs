//! Group `mysql`: row leases, which all stores share, against a hand-written loop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use sendoff::store::{Claim, WorkStore};

use crate::core::drain::{BACKLOG, row_lease};
use crate::figure::{Figures, Goal};
use crate::subject::Schema;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    crate::mariadb::measure(figures).await?;
    let name = "postgres_row_lease_vs_hand_written";
    if !figures.wants(&[name]) {
        return Ok(());
    }
    let mut ratios = Vec::new();
    for round in 1..=figures.rounds {
        let ours = jobs().await?;
        let by_hand = row_lease().await?;
        figures.progress(&format!(
            "jobs, round {round}: ours {ours:.0}/s, hand-written {by_hand:.0}/s"
        ));
        ratios.push(ours / by_hand);
    }
    figures.report(name, "ratio", Goal::AtLeast(0.9), &ratios);
    Ok(())
}

/// Jobs per second with two workers that claim 500 at a time and only mark them.
async fn jobs() -> Result<f64> {
    let schema = Schema::fresh("bench_jobs").await?;
    let fill = schema.fill_sql(BACKLOG).replace("outbox_message", "outbox_job");
    schema.client.batch_execute(&fill).await?;
    let begun = Instant::now();
    let worker = async |name: &'static str| {
        let store: Arc<dyn WorkStore> = Arc::new(schema.store(false)?);
        let mut taken = 0;
        loop {
            let jobs = store.claim_batch(name, 500, Duration::from_secs(30)).await?;
            if jobs.is_empty() {
                return anyhow::Ok(taken);
            }
            taken += jobs
                .iter()
                .filter(|job| !job.payload.is_empty() && !job.topic.is_empty())
                .count() as u64;
            let claims: Vec<Claim> = jobs.iter().map(|job| job.claim).collect();
            let lost = store.mark_success(name, &claims).await?;
            anyhow::ensure!(lost.is_empty(), "{} leases were lost", lost.len());
        }
    };
    let (one, two) = tokio::try_join!(worker("one"), worker("two"))?;
    anyhow::ensure!(one + two == BACKLOG, "the workers drained {one} + {two}");
    Ok(BACKLOG as f64 / begun.elapsed().as_secs_f64())
}
