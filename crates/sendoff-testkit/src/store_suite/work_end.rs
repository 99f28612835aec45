//! Jobs: how they end, and how they come back.

use std::time::Duration;

use sendoff::store::{
    CleanCount, Cleaned, Command, Filter, JobState, LISTED_BYTES, Retention, Status, Stored, StoredJob,
};
use sendoff::{Message, Uuid};

use super::Setup;
use super::registry::{CaseResult, cases};
use super::scene::{LONG_LEASE, Scene, TICK, eventually, numbered, plain};
use super::work_scene::{SHORT_LEASE, claims};

const KEEPING: Setup = Setup {
    keep_delivered: true,
    ..Setup::PLAIN
};

cases![
    an_job_has_as_many_attempts_as_it_says needs Jobs,
    an_job_has_five_attempts_unless_it_says_otherwise needs Jobs,
    an_job_that_kills_its_workers_is_given_up needs Jobs,
    an_job_that_is_given_back_is_due_at_once_and_not_charged needs Jobs,
    failed_jobs_come_back_when_an_operator_says_so needs Jobs,
    jobs_of_every_state_are_listed_with_their_lease needs Jobs with KEEPING,
    failed_jobs_are_listed_in_pages_and_discarded needs Jobs,
    a_list_has_the_beginning_of_jobs_that_are_long needs Jobs,
    an_expired_job_fails_and_is_not_handed_out needs Jobs,
    an_unreadable_job_fails_and_holds_up_nobody needs JobsAndSql,
    completed_jobs_are_kept_where_a_retention_says_so needs Jobs with KEEPING,
    any_error_can_be_noted needs JobsAndSql,
];

async fn an_job_has_as_many_attempts_as_it_says(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs([plain("t").max_attempts(2)]).await?;
    let first = scene.claim_one("w").await?;
    let state = work.mark_retry("w", first.claim, Duration::ZERO, "once").await?;
    assert_eq!(state, JobState::Retry);
    let second = scene.claim_when_due("w", LONG_LEASE).await?.remove(0);
    assert_eq!((second.attempt, second.max_attempts), (2, 2));
    let state = work.mark_retry("w", second.claim, Duration::ZERO, "twice").await?;
    assert_eq!(state, JobState::Failed);
    assert_eq!(work.claim_batch("w", 10, LONG_LEASE).await?, []);
    assert_eq!(work.job_counts().await?.failed, 1);
    Ok(())
}

async fn an_job_has_five_attempts_unless_it_says_otherwise(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs([plain("t")]).await?;
    for attempt in 1..=5 {
        let job = scene.claim_when_due("w", LONG_LEASE).await?.remove(0);
        assert_eq!((job.attempt, job.max_attempts), (attempt, 5));
        let state = work.mark_retry("w", job.claim, Duration::ZERO, "no").await?;
        assert_eq!(state == JobState::Failed, attempt == 5);
    }
    Ok(())
}

async fn an_job_that_kills_its_workers_is_given_up(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs([plain("deadly").max_attempts(2)]).await?;
    for worker in ["first victim", "second victim"] {
        assert_eq!(scene.claim_when_due(worker, SHORT_LEASE).await?.len(), 1);
    }
    let handed_out = std::sync::atomic::AtomicUsize::new(0);
    eventually("it is given up", async || {
        let jobs = work.claim_batch("third", 1, LONG_LEASE).await?;
        handed_out.fetch_add(jobs.len(), std::sync::atomic::Ordering::Relaxed);
        Ok(work.job_counts().await?.failed == 1)
    })
    .await?;
    assert_eq!(handed_out.into_inner(), 0, "two attempts are two attempts");
    Ok(())
}

async fn an_job_that_is_given_back_is_due_at_once_and_not_charged(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene
        .emit_jobs((0..3).map(|n| numbered("k", n).max_attempts(1)))
        .await?;
    let jobs = work.claim_batch("w", 3, LONG_LEASE).await?;
    assert_eq!(work.release("w", &claims(&jobs)).await?, []);
    assert_eq!(work.job_counts().await?.pending, 3);
    let again = work.claim_batch("another", 3, LONG_LEASE).await?;
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|job| job.attempt == 1));
    Ok(())
}

async fn failed_jobs_come_back_when_an_operator_says_so(scene: Scene) -> CaseResult {
    let work = scene.work();
    let asked = Filter {
        topic: Some("suite.*".into()),
        ..Filter::default()
    };
    let ids = scene
        .emit_jobs((0..4).map(|n| numbered("k", n).max_attempts(1)))
        .await?;
    let jobs = work.claim_batch("w", 4, LONG_LEASE).await?;
    for job in &jobs {
        work.mark_failed("w", job.claim, "no").await?;
    }
    assert_eq!(
        work.retry_failed(&[ids[2].id()], 10, &asked, &mut Command::by("ann"))
            .await?,
        1
    );
    let back = scene.claim_one("w").await?;
    assert_eq!((back.id, back.attempt), (ids[2].id(), 1));
    assert_eq!(work.retry_failed(&[], 2, &asked, &mut Command::by("ann")).await?, 2);
    assert_eq!(work.retry_failed(&[], 10, &asked, &mut Command::by("ann")).await?, 1);
    assert_eq!(work.retry_failed(&[], 10, &asked, &mut Command::by("ann")).await?, 0);
    assert_eq!(work.claim_batch("w", 10, LONG_LEASE).await?.len(), 3);
    let audit = scene.subject.operate.audit(10).await?;
    let noted: Vec<_> = audit
        .iter()
        .rev()
        .map(|row| (row.who.as_str(), row.action.as_str(), row.affected))
        .collect();
    let retried = |count| ("ann", "jobs retry", count);
    assert_eq!(noted, [1, 2, 1, 0].map(retried));
    let filter: Filter = serde_json::from_str(&audit[0].filter).expect("a filter as JSON");
    assert_eq!(filter, asked, "what was asked for, not what it came to");
    Ok(())
}

fn messages(jobs: Vec<StoredJob>) -> Vec<Stored> {
    jobs.into_iter().map(|job| job.message).collect()
}

async fn jobs_of_every_state_are_listed_with_their_lease(scene: Scene) -> CaseResult {
    let work = scene.work();
    let states = [
        JobState::Completed,
        JobState::Failed,
        JobState::Retry,
        JobState::Running,
        JobState::Pending,
    ];
    let ids = scene.emit_jobs(states.map(|state| plain(state.as_str()))).await?;
    let before = scene.now().await?;
    let jobs = work.claim_batch("w", 4, LONG_LEASE).await?;
    let after = scene.now().await?;
    assert_eq!(work.mark_success("w", &claims(&jobs[..1])).await?, []);
    work.mark_failed("w", jobs[1].claim, "never").await?;
    work.mark_retry("w", jobs[2].claim, LONG_LEASE, "later").await?;
    let all = work.jobs(None, &[], None, i64::MIN, 10).await?;
    assert_eq!(all.iter().map(|job| job.state).collect::<Vec<_>>(), states);
    for (job, id) in all.iter().zip(&ids) {
        let (state, message) = (job.state, &job.message);
        assert_eq!((message.id, message.topic.as_str()), (Some(id.id()), state.as_str()));
        assert_eq!(message.detail.as_deref(), Some(state.as_str()));
        assert_eq!(
            work.jobs(Some(state), &[], None, i64::MIN, 10).await?,
            std::slice::from_ref(job)
        );
        assert_eq!(
            work.jobs(None, &[id.id()], None, i64::MIN, 10).await?,
            std::slice::from_ref(job)
        );
        assert_eq!(work.jobs(Some(state), &[], None, message.seq, 10).await?, []);
        let is_running = state == JobState::Running;
        assert_eq!(job.lease_owner.as_deref(), is_running.then_some("w"));
        assert_eq!(job.lease_until.is_some(), is_running);
        assert_eq!(
            message.due_at.is_some(),
            matches!(state, JobState::Pending | JobState::Retry)
        );
        assert_eq!(message.ended_at.is_some(), state == JobState::Completed);
    }
    let until = all[3].lease_until.expect("it is running");
    assert!(until >= before + LONG_LEASE - TICK && until <= after + LONG_LEASE + TICK);
    assert_eq!(all[2].message.last_error.as_deref(), Some("later"));
    assert_eq!(work.jobs(None, &[], None, i64::MIN, 2).await?, all[..2]);
    Ok(())
}

async fn failed_jobs_are_listed_in_pages_and_discarded(scene: Scene) -> CaseResult {
    let (work, asked) = (scene.work(), Filter::default());
    let message = |n| numbered("k", n).max_attempts(3).idempotency_key(format!("once {n}"));
    let ids = scene.emit_jobs((0..5).map(message)).await?;
    scene.emit_jobs([plain("another")]).await?;
    let jobs = work.claim_batch("w", 5, LONG_LEASE).await?;
    for job in &jobs {
        work.mark_failed("w", job.claim, "no paper").await?;
    }
    let failed = Some(JobState::Failed);
    let first = messages(work.jobs(failed, &[], None, i64::MIN, 3).await?);
    assert_eq!(first.len(), 3);
    let (one, given) = (&first[0], &jobs[0]);
    assert_eq!((one.id, &one.topic), (Some(ids[0].id()), &given.topic));
    assert_eq!((&one.key, one.payload.as_slice()), (&given.key, &given.payload[..]));
    assert_eq!((one.attempts, one.max_attempts), (1, Some(3)));
    assert_eq!(one.last_error.as_deref(), Some("no paper"));
    assert_eq!((one.status, one.detail.as_deref()), (Status::Dead, Some("failed")));
    assert_eq!(one.idempotency_key.as_deref(), Some("once 0"));
    assert_eq!(one.created_at, given.created_at);
    let rest = messages(work.jobs(failed, &[], None, first[2].seq, 3).await?);
    let all: Vec<_> = first.iter().chain(&rest).map(|job| job.id).collect();
    assert_eq!(
        all,
        ids.iter().map(|id| Some(id.id())).collect::<Vec<_>>(),
        "in order, each once"
    );
    let named = messages(
        work.jobs(failed, &[ids[3].id(), Uuid::new_v4()], None, i64::MIN, 10)
            .await?,
    );
    assert_eq!(named.iter().map(|job| job.id).collect::<Vec<_>>(), [Some(ids[3].id())]);
    let mut command = Command::by("ann");
    let one = [ids[1].id()];
    assert_eq!(work.discard_failed(&one, 10, &asked, &mut command).await?, 1);
    assert_eq!(work.discard_failed(&one, 10, &asked, &mut command).await?, 0);
    assert_eq!(
        work.discard_failed(&[], 2, &asked, &mut command).await?,
        2,
        "the oldest first"
    );
    let left = messages(work.jobs(failed, &[], None, i64::MIN, 10).await?);
    assert_eq!(
        left.iter().map(|job| job.id).collect::<Vec<_>>(),
        [Some(ids[3].id()), Some(ids[4].id())]
    );
    let counts = work.job_counts().await?;
    assert_eq!((counts.failed, counts.pending), (2, 1), "others are not touched");
    let audit = scene.subject.operate.audit(10).await?;
    let noted: Vec<u64> = audit
        .iter()
        .rev()
        .filter(|row| row.action == "jobs discard")
        .map(|row| row.affected)
        .collect();
    assert_eq!(noted, [3], "a command has one row");
    Ok(())
}

/// A thousand jobs in a list must not be a thousand times what a job may have; and what is behind the beginning is found.
async fn a_list_has_the_beginning_of_jobs_that_are_long(scene: Scene) -> CaseResult {
    let work = scene.work();
    let mut payload: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    payload.extend(b"the end");
    let long = Message::bytes("long", "text/plain", payload.clone()).header("h", "v".repeat(60_000));
    let short = Message::bytes("short", "text/plain", b"abc".to_vec()).header("h", "v");
    let bare = Message::bytes("bare", "text/plain", Vec::new());
    let emitted = scene.emit_jobs([long, short, bare]).await?;
    let listed: Vec<Stored> = messages(work.jobs(None, &[], None, i64::MIN, 10).await?);
    let [long, short, bare] = &listed[..] else {
        panic!("three are listed: {listed:?}")
    };
    assert_eq!(
        (long.payload_bytes, &long.payload[..]),
        (300_007, &payload[..LISTED_BYTES])
    );
    assert_eq!((&long.headers, long.headers_cut), (&None, true));
    assert_eq!((short.payload_bytes, &short.payload[..]), (3, &b"abc"[..]));
    assert!(short.headers.is_some() && !short.headers_cut);
    assert_eq!((bare.payload_bytes, &bare.headers, bare.headers_cut), (0, &None, false));
    let parts: [(&str, &[&str]); 3] = [("the end", &["long"]), ("abc", &["long", "short"]), ("The end", &[])];
    for (part, expected) in parts {
        let found = messages(work.jobs(None, &[], Some(part), i64::MIN, 10).await?);
        let topics: Vec<&str> = found.iter().map(|job| job.topic.as_str()).collect();
        assert_eq!(topics, expected, "{part}");
    }
    let found = work.find_job(emitted[0].id()).await?.expect("it is there").message;
    assert_eq!((found.payload_bytes, found.payload), (300_007, payload));
    assert!(found.headers.is_some_and(|headers| headers.len() > 60_000) && !found.headers_cut);
    assert_eq!(work.find_job(Uuid::new_v4()).await?, None);
    Ok(())
}

async fn an_expired_job_fails_and_is_not_handed_out(scene: Scene) -> CaseResult {
    let work = scene.work();
    let expiry = scene.now().await? + Duration::from_millis(30);
    scene
        .emit_jobs([plain("late").expires_at(expiry), plain("fine")])
        .await?;
    eventually("it has expired", async || Ok(scene.now().await? > expiry + TICK)).await?;
    let jobs = work.claim_batch("w", 1, LONG_LEASE).await?;
    assert_eq!(jobs.len(), 1, "what cannot be handed out hides nothing behind it");
    assert_eq!(jobs[0].topic, "fine");
    assert_eq!(work.job_counts().await?.failed, 1);
    // Brought back it is worked on, whatever its date says.
    assert_eq!(
        work.retry_failed(&[], 10, &Filter::default(), &mut Command::by("ann"))
            .await?,
        1
    );
    assert_eq!(scene.claim_one("w").await?.topic, "late");
    Ok(())
}

async fn an_unreadable_job_fails_and_holds_up_nobody(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs([plain("vandalised"), plain("fine")]).await?;
    let vandalise = "UPDATE outbox_job SET headers = '[1]' WHERE topic = 'vandalised'";
    assert_eq!(scene.subject.database.execute(vandalise).await?, 1);
    let jobs = work.claim_batch("w", 10, LONG_LEASE).await?;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].topic, "fine");
    assert_eq!(work.job_counts().await?.failed, 1);
    let errors = scene
        .subject
        .database
        .fetch("SELECT last_error FROM outbox_job WHERE state = 'failed'")
        .await?;
    assert!(
        errors[0][0]
            .as_deref()
            .is_some_and(|error| error.contains("unreadable")),
        "{errors:?}"
    );
    Ok(())
}

async fn completed_jobs_are_kept_where_a_retention_says_so(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs((0..3).map(|n| numbered("k", n))).await?;
    let jobs = work.claim_batch("w", 2, LONG_LEASE).await?;
    assert_eq!(work.mark_success("w", &claims(&jobs)).await?, []);
    let counts = work.job_counts().await?;
    assert_eq!((counts.completed, counts.pending), (2, 1));
    assert_eq!(scene.subject.relay.clean(100).await?, 0, "they are not old yet");
    let retention = Retention {
        delivered: Some(Duration::ZERO),
        ..Retention::default()
    };
    let operate = &scene.subject.operate;
    assert_eq!(operate.clean_count(&retention).await?, CleanCount { old: 2, all: 2 });
    let mut command = Command::by("ann");
    for (deleted, more) in [(1, true), (1, true), (0, false)] {
        let cleaned = operate.clean_up(&retention, 1, &mut command).await?;
        assert_eq!(cleaned, Cleaned { deleted, more });
    }
    assert_eq!(operate.clean_count(&retention).await?, CleanCount::default());
    assert_eq!(work.job_counts().await?.pending, 1);
    assert_eq!(work.claim_batch("w", 10, LONG_LEASE).await?.len(), 1);
    Ok(())
}

async fn any_error_can_be_noted(scene: Scene) -> CaseResult {
    let work = scene.work();
    let errors = ["nul \0 byte", "quote ' and \\ and 🔑", "", &"long ".repeat(100_000)];
    for error in errors {
        let id = scene.emit_jobs([Message::json("t", &())?]).await?[0].id();
        let job = scene.claim_one("w").await?;
        assert_eq!(job.id, id);
        work.mark_failed("w", job.claim, error).await?;
    }
    let noted = scene
        .subject
        .database
        .fetch("SELECT last_error FROM outbox_job WHERE last_error LIKE 'quote%'")
        .await?;
    assert_eq!(noted[0][0].as_deref(), Some("quote ' and \\ and 🔑"));
    Ok(())
}
