//! Jobs: only who holds a lease changes anything.

use std::time::Duration;

use sendoff::store::{Claim, WorkStore};
use sendoff::{ErrorKind, Result};

use super::registry::{CaseResult, cases};
use super::scene::{LONG_LEASE, Scene, numbered, plain};
use super::work_scene::{SHORT_LEASE, claims};

cases![
    a_stale_worker_cannot_mark needs Jobs,
    a_stale_claim_of_the_same_worker_is_refused needs Jobs,
    a_lease_that_ran_out_is_worth_nothing needs Jobs,
    the_claim_of_another_worker_is_refused needs Jobs,
    an_job_is_marked_once needs Jobs,
    of_many_only_the_lost_ones_are_refused needs Jobs,
    an_extended_lease_holds needs Jobs,
    the_reaper_takes_stale_jobs_and_counts_them needs Jobs,
    the_reaper_leaves_leases_alone_that_hold_or_ran_out_just_now needs Jobs,
];

/// Everything that a worker can do to a job is refused.
async fn is_refused(work: &dyn WorkStore, worker: &str, claim: Claim) -> Result<()> {
    assert_eq!(work.mark_success(worker, &[claim]).await?, [claim]);
    assert_eq!(work.extend(worker, &[claim], LONG_LEASE).await?, [claim]);
    assert_eq!(work.release(worker, &[claim]).await?, [claim]);
    let retried = work.mark_retry(worker, claim, Duration::ZERO, "stale").await;
    let failed = work.mark_failed(worker, claim, "stale").await;
    for error in [retried.err(), failed.err()] {
        let error = error.expect("it was not held");
        assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
        assert!(!error.is_temporary() && error.next().is_some(), "{error}");
    }
    Ok(())
}

async fn a_stale_worker_cannot_mark(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs([plain("t")]).await?;
    let stale = work.claim_batch("slow", 1, SHORT_LEASE).await?.remove(0);
    let fresh = scene.claim_when_due("quick", LONG_LEASE).await?.remove(0);
    assert_eq!((stale.id, stale.attempt, fresh.attempt), (fresh.id, 1, 2));
    assert_ne!(stale.claim, fresh.claim);
    is_refused(&*work, "slow", stale.claim).await?;
    assert_eq!(work.job_counts().await?.running, 1, "nothing was changed");
    assert_eq!(work.mark_success("quick", &[fresh.claim]).await?, []);
    Ok(())
}

async fn a_stale_claim_of_the_same_worker_is_refused(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs([plain("t")]).await?;
    let stale = work.claim_batch("w", 1, SHORT_LEASE).await?.remove(0);
    let fresh = scene.claim_when_due("w", LONG_LEASE).await?.remove(0);
    assert_eq!(stale.id, fresh.id);
    is_refused(&*work, "w", stale.claim).await?;
    assert_eq!(work.mark_success("w", &[fresh.claim]).await?, []);
    Ok(())
}

async fn a_lease_that_ran_out_is_worth_nothing(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs([plain("t")]).await?;
    let job = work.claim_batch("w", 1, SHORT_LEASE).await?.remove(0);
    scene.pass(SHORT_LEASE).await?;
    is_refused(&*work, "w", job.claim).await?;
    assert_eq!(scene.claim_one("another").await?.id, job.id);
    Ok(())
}

async fn the_claim_of_another_worker_is_refused(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs([plain("t")]).await?;
    let job = scene.claim_one("owner").await?;
    is_refused(&*work, "thief", job.claim).await?;
    let guessed = Claim {
        number: job.claim.number + 1,
        ..job.claim
    };
    is_refused(&*work, "owner", guessed).await?;
    assert_eq!(work.mark_success("owner", &[job.claim]).await?, []);
    Ok(())
}

async fn an_job_is_marked_once(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs((0..4).map(|n| numbered("k", n))).await?;
    let jobs = work.claim_batch("w", 4, LONG_LEASE).await?;
    assert_eq!(work.mark_success("w", &[jobs[0].claim]).await?, []);
    work.mark_failed("w", jobs[1].claim, "no").await?;
    work.mark_retry("w", jobs[2].claim, LONG_LEASE, "no").await?;
    assert_eq!(work.release("w", &[jobs[3].claim]).await?, []);
    let counts = work.job_counts().await?;
    for job in &jobs {
        is_refused(&*work, "w", job.claim).await?;
    }
    assert_eq!(work.job_counts().await?, counts);
    Ok(())
}

async fn of_many_only_the_lost_ones_are_refused(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs((0..6).map(|n| numbered("k", n))).await?;
    let mut jobs = work.claim_batch("w", 3, LONG_LEASE).await?;
    jobs.extend(work.claim_batch("w", 3, LONG_LEASE).await?);
    let lost = jobs[4].claim;
    work.mark_failed("w", lost, "no").await?;
    assert_eq!(work.extend("w", &claims(&jobs), LONG_LEASE).await?, [lost]);
    assert_eq!(work.mark_success("w", &claims(&jobs)).await?, [lost]);
    let counts = work.job_counts().await?;
    assert_eq!((counts.failed, counts.total()), (1, 1));
    assert_eq!(work.mark_success("w", &[]).await?, []);
    Ok(())
}

async fn an_extended_lease_holds(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs([plain("kept"), plain("left")]).await?;
    let lease = 4 * SHORT_LEASE;
    let jobs = work.claim_batch("w", 2, lease).await?;
    let kept = jobs.iter().find(|job| job.topic == "kept").expect("it is there").claim;
    assert_eq!(work.extend("w", &[kept], LONG_LEASE).await?, []);
    let others = scene.claim_when_due("another", LONG_LEASE).await?;
    assert_eq!(others.len(), 1, "only what was not extended is handed out again");
    assert_eq!(others[0].topic, "left");
    assert_eq!(work.mark_success("w", &[kept]).await?, []);
    Ok(())
}

async fn the_reaper_takes_stale_jobs_and_counts_them(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs((0..3).map(|n| numbered("k", n))).await?;
    scene.emit_jobs([plain("last").max_attempts(1)]).await?;
    let jobs = work.claim_batch("gone", 4, SHORT_LEASE).await?;
    scene.pass(SHORT_LEASE).await?;
    assert_eq!(work.reap(LONG_LEASE).await?, 0, "no lease ran out that long ago");
    assert_eq!(work.job_counts().await?.running, 4);
    assert_eq!(work.reap(Duration::ZERO).await?, 4);
    assert_eq!(work.reap(Duration::ZERO).await?, 0);
    let counts = work.job_counts().await?;
    assert_eq!(
        (counts.retry, counts.failed),
        (3, 1),
        "without an attempt left it has failed"
    );
    for job in &jobs {
        is_refused(&*work, "gone", job.claim).await?;
    }
    let again = work.claim_batch("w", 10, LONG_LEASE).await?;
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|job| job.attempt == 2));
    Ok(())
}

async fn the_reaper_leaves_leases_alone_that_hold_or_ran_out_just_now(scene: Scene) -> CaseResult {
    let (work, stale_after) = (scene.work(), Duration::from_secs(3));
    scene.emit_jobs((0..4).map(|n| numbered("k", n))).await?;
    let jobs = work.claim_batch("w", 4, LONG_LEASE).await?;
    let [stale, extended, held, just_over] = claims(&jobs)[..] else {
        panic!("all are due");
    };
    assert_eq!(work.extend("w", &[stale], SHORT_LEASE).await?, []);
    scene.pass(SHORT_LEASE + stale_after).await?;
    assert_eq!(work.extend("w", &[extended], LONG_LEASE).await?, []);
    assert_eq!(work.extend("w", &[just_over], SHORT_LEASE).await?, []);
    scene.pass(SHORT_LEASE).await?;
    assert_eq!(work.reap(stale_after).await?, 1);
    let counts = work.job_counts().await?;
    assert_eq!((counts.running, counts.retry), (3, 1));
    assert_eq!(work.mark_success("w", &[stale, extended, held]).await?, [stale]);
    assert_eq!(
        work.reap(Duration::ZERO).await?,
        1,
        "the one whose lease ran out just now"
    );
    Ok(())
}
