//! Jobs: workers that are killed at any moment, and workers that are slower than their lease.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sendoff::store::{Claim, Job, WorkStore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered, persistently};
use super::work_scene::claims;

cases![
    every_job_is_completed_once_whoever_is_killed needs Jobs,
];

const WORKERS: usize = 8;
/// Of the workers, those that are never killed, and often slower than their lease.
const SLOW: usize = 2;
const JOBS: usize = 10_000;
const LEASE: Duration = Duration::from_millis(400);

/// What workers saw, by job.
#[derive(Default)]
struct Seen {
    /// The newest attempt, and the number of its hand-out. Numbers come by chance; attempts are counted.
    newest: HashMap<i64, (u32, i64)>,
    /// Which attempt a hand-out was.
    attempts: HashMap<Claim, u32>,
    /// The number under which it was completed.
    completed: HashMap<i64, i64>,
    /// Marks that were sent by workers that were killed before the answer came.
    unanswered: Vec<Claim>,
    /// Marks that were refused.
    refused: usize,
    hand_outs: usize,
}

impl Seen {
    fn claimed(&mut self, jobs: &[Job]) {
        self.hand_outs += jobs.len();
        for job in jobs {
            let Claim { seq, number } = job.claim;
            self.attempts.insert(job.claim, job.attempt);
            // An older hand-out may be noted late: it was before the completion anyway.
            let done = self.completed.get(&seq).map(|number| Claim { seq, number: *number });
            let done = done.and_then(|done| self.attempts.get(&done));
            assert!(
                done.is_none_or(|done| job.attempt < *done),
                "job {seq} was handed out after it was completed at attempt {done:?}"
            );
            let newest = self.newest.entry(seq).or_default();
            *newest = (job.attempt, number).max(*newest);
        }
    }

    fn marked(&mut self, claims: &[Claim], lost: &[Claim]) {
        self.refused += lost.len();
        self.unanswered.retain(|claim| !claims.contains(claim));
        for claim in claims.iter().filter(|claim| !lost.contains(claim)) {
            let twice = self.completed.insert(claim.seq, claim.number);
            assert!(twice.is_none(), "job {} was completed twice", claim.seq);
        }
    }
}

async fn every_job_is_completed_once_whoever_is_killed(scene: Scene) -> CaseResult {
    for chunk in 0..JOBS / 1000 {
        let jobs = (0..1000).map(|n| numbered("k", chunk * 1000 + n).max_attempts(10_000));
        scene.emit_jobs(jobs).await?;
    }
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut workers = JoinSet::new();
    let mut alive: Vec<AbortHandle> = Vec::new();
    // Stores outlive the workers that use them, as a database outlives processes.
    let mut stores = Vec::new();
    for n in 0..WORKERS {
        stores.push(scene.second().await?.work());
        let slow = n >= WORKERS - SLOW;
        alive.push(workers.spawn(work_on(stores[n].clone(), format!("worker {n}"), slow, seen.clone())));
    }
    let (began, mut kills) = (Instant::now(), 0);
    while kills < 120 || scene.work().job_counts().await?.total() > 0 {
        assert!(
            began.elapsed() < Duration::from_secs(50),
            "stuck: {:?}",
            scene.work().job_counts().await?
        );
        sleep(Duration::from_millis(fastrand::u64(5..30))).await;
        let victim = fastrand::usize(..WORKERS - SLOW);
        // Half of the new ones have the name of the old: only their claims tell them apart.
        let name = if kills % 2 == 0 {
            format!("worker {victim}")
        } else {
            format!("worker {victim}, {kills}")
        };
        alive[victim].abort();
        alive[victim] = workers.spawn(work_on(stores[victim].clone(), name, false, seen.clone()));
        kills += 1;
        while let Some(ended) = workers.try_join_next() {
            match ended {
                Err(error) if error.is_cancelled() => {}
                ended => panic!("a worker ended: {ended:?}"),
            }
        }
    }
    workers.shutdown().await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.newest.len(), JOBS, "each was handed out");
    for (seq, number) in &seen.completed {
        assert_eq!(
            seen.newest[seq].1, *number,
            "job {seq} was completed under a claim that was not the newest"
        );
    }
    // A kill may hide the answer to a mark, so such a job is gone without anybody knowing.
    let unknown = seen.newest.iter().filter(|(seq, _)| !seen.completed.contains_key(seq));
    for (seq, (_, number)) in unknown {
        let claim = Claim {
            seq: *seq,
            number: *number,
        };
        assert!(
            seen.unanswered.contains(&claim),
            "job {seq} is gone, and nobody marked its last claim"
        );
    }
    assert!(seen.hand_outs > JOBS, "the kills hit nobody");
    assert!(seen.refused > 0, "nobody was slower than its lease");
    Ok(())
}

async fn work_on(store: Arc<dyn WorkStore>, name: String, slow: bool, seen: Arc<Mutex<Seen>>) -> sendoff::Result<()> {
    loop {
        // Kills come between these lines: nothing may hang on what a worker remembers.
        let jobs = persistently(|| store.claim_batch(&name, 25, LEASE)).await?;
        seen.lock().unwrap().claimed(&jobs);
        let oversleeps = slow && fastrand::bool();
        sleep(if oversleeps {
            LEASE + LEASE / 4
        } else {
            Duration::from_millis(8)
        })
        .await;
        let claims = claims(&jobs);
        seen.lock().unwrap().unanswered.extend(&claims);
        let lost = persistently(|| store.mark_success(&name, &claims)).await?;
        seen.lock().unwrap().marked(&claims, &lost);
    }
}
