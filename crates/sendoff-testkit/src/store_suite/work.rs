//! Jobs: emitted, handed out, worked on.

use std::collections::HashSet;
use std::time::Duration;

use sendoff::store::{CLAIM_BYTES, JobCounts};
use sendoff::{Emitted, ErrorKind, Message};

use super::registry::{CaseResult, cases};
use super::scene::{LONG_LEASE, Scene, numbered, persistently, plain};
use super::work_scene::{SHORT_LEASE, claims};

cases![
    an_job_is_handed_out_as_it_was_emitted needs Jobs,
    payload_bytes_of_jobs_survive needs Jobs,
    large_jobs_are_handed_out_some_at_a_time needs Jobs,
    an_job_of_a_rolled_back_transaction_never_existed needs Jobs,
    jobs_and_messages_do_not_mix needs Jobs,
    no_job_is_handed_to_two_workers_within_a_lease needs Jobs,
    jobs_come_in_the_order_of_their_next_attempt needs Jobs,
    a_worker_gets_only_jobs_of_its_topics needs Jobs,
    a_scheduled_job_waits_for_its_time needs Jobs,
    an_idempotency_key_makes_one_job needs Jobs,
    a_worker_without_a_name_is_refused needs Jobs,
    jobs_are_counted_by_their_state needs Jobs,
];

async fn an_job_is_handed_out_as_it_was_emitted(scene: Scene) -> CaseResult {
    let message: Message = sendoff::Event::new("order", "42", "order.placed").payload(&"x")?.into();
    let message = message
        .key("customer 7")
        .header("traceparent", "00-1")
        .priority(3)
        .max_attempts(9);
    let id = message.id();
    scene.emit_jobs([message.schema_version(4)]).await?;
    let job = scene.claim_one("w").await?;
    assert_eq!((job.id, job.topic.as_str()), (id, "order.placed"));
    assert_eq!((job.attempt, job.max_attempts), (1, 9));
    assert_eq!(job.key.as_deref(), Some("customer 7"));
    assert_eq!(
        (job.aggregate_type.as_deref(), job.aggregate_id.as_deref()),
        (Some("order"), Some("42"))
    );
    assert_eq!((job.schema_version, job.priority), (Some(4), 3));
    assert_eq!(job.headers.get("traceparent"), Some("00-1"));
    assert_eq!(job.content_type(), "application/json");
    assert_eq!(scene.work().mark_success("w", &[job.claim]).await?, []);
    assert_eq!(scene.work().job_counts().await?.total(), 0, "done jobs are gone");
    Ok(())
}

async fn large_jobs_are_handed_out_some_at_a_time(scene: Scene) -> CaseResult {
    let size = 1_000_000;
    let fit = CLAIM_BYTES.div_ceil(size);
    let payload = |n: usize| vec![u8::try_from(n).expect("there are few"); size];
    for n in 0..fit + 3 {
        scene.emit_jobs([Message::bytes("t", "x/y", payload(n))]).await?;
    }
    let mut jobs = scene.work().claim_batch("w", 100, LONG_LEASE).await?;
    assert_eq!(jobs.len(), fit);
    jobs.extend(scene.work().claim_batch("w", 100, LONG_LEASE).await?);
    assert_eq!(jobs.len(), fit + 3);
    for (n, job) in jobs.iter().enumerate() {
        assert!(job.payload == payload(n), "the payload of number {n}");
    }
    Ok(())
}

async fn a_worker_gets_only_jobs_of_its_topics(scene: Scene) -> CaseResult {
    // Names that a careless comparison would mix up.
    let names = ["mail", "Mail", "ma%l", "\"mail\"", "mail,print", "print"];
    let jobs = names.iter().chain(&names).map(|topic| plain(topic));
    // One that has expired: only a worker of its topic may fail it.
    let expired = plain("print").expires_at(std::time::SystemTime::now() - Duration::from_secs(1));
    scene.emit_jobs(jobs.chain([expired])).await?;
    let work = scene.work();
    let claim = async |topics: &[&str], limit: usize| -> sendoff::Result<Vec<String>> {
        let topics: Vec<String> = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let jobs = work.claim_topics("w", &topics, limit, LONG_LEASE).await?;
        Ok(jobs.into_iter().map(|job| job.topic).collect())
    };
    assert_eq!(claim(&["mail"], 1).await?, ["mail"]);
    assert_eq!(claim(&["mail"], 10).await?, ["mail"], "and no more");
    assert_eq!(claim(&["mail", "nobody's"], 10).await?, [""; 0], "others are due");
    assert_eq!(work.job_counts().await?.failed, 0, "a job of another topic was failed");
    assert_eq!(claim(&["ma%l", "\"mail\""], 3).await?, ["ma%l", "\"mail\"", "ma%l"]);
    assert_eq!(claim(&["print", "Mail"], 10).await?, ["Mail", "print", "Mail", "print"]);
    assert_eq!(work.job_counts().await?.failed, 1);
    assert_eq!(
        claim(&[], 10).await?,
        ["mail,print", "\"mail\"", "mail,print"],
        "any topic"
    );
    Ok(())
}

async fn payload_bytes_of_jobs_survive(scene: Scene) -> CaseResult {
    let payloads: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![0],
        (0..=255).collect(),
        b"\xed\xa0\x80 lone surrogate".to_vec(),
        vec![0xff; 200_000],
    ];
    // One by one, and all in one statement.
    for payload in &payloads {
        scene.emit_jobs([Message::bytes("b", "x/y", payload.clone())]).await?;
    }
    let many = payloads
        .iter()
        .map(|payload| Message::bytes("b", "x/y", payload.clone()));
    scene.emit_jobs(many).await?;
    let jobs = scene.work().claim_batch("w", 100, LONG_LEASE).await?;
    let found: Vec<&[u8]> = jobs.iter().map(|job| &job.payload[..]).collect();
    let expected: Vec<&[u8]> = payloads.iter().chain(&payloads).map(Vec::as_slice).collect();
    assert!(found == expected, "payloads differ, or come in another order");
    assert!(jobs.iter().all(|job| job.content_type() == "x/y"));
    Ok(())
}

async fn an_job_of_a_rolled_back_transaction_never_existed(scene: Scene) -> CaseResult {
    let mut tx = scene.work().begin_jobs().await?;
    tx.emit(&[plain("t")]).await?;
    tx.rollback().await?;
    assert_eq!(scene.work().job_counts().await?, JobCounts::default());
    assert_eq!(scene.work().claim_batch("w", 10, LONG_LEASE).await?, []);
    Ok(())
}

async fn jobs_and_messages_do_not_mix(scene: Scene) -> CaseResult {
    let message = scene.emit([plain("t")]).await?[0].id();
    let job = scene.emit_jobs([plain("t")]).await?[0].id();
    assert_eq!(scene.claim_one("w").await?.id, job);
    let read = scene.relay().await?.read_messages(1).await;
    assert_eq!(read.iter().map(|row| row.id).collect::<Vec<_>>(), [message]);
    assert_eq!(scene.subject.relay.backlog().await?.ready, 1);
    Ok(())
}

async fn no_job_is_handed_to_two_workers_within_a_lease(scene: Scene) -> CaseResult {
    const JOBS: usize = 600;
    scene.emit_jobs((0..JOBS).map(|n| numbered("k", n))).await?;
    let mut workers = tokio::task::JoinSet::new();
    for n in 0..6 {
        let store = scene.second().await?.work();
        workers.spawn(async move {
            let (name, mut mine) = (format!("w{n}"), Vec::new());
            loop {
                let jobs = persistently(|| store.claim_batch(&name, 7, LONG_LEASE)).await?;
                if jobs.is_empty() {
                    return Ok::<_, sendoff::Error>(mine);
                }
                mine.extend(jobs.into_iter().map(|job| job.id));
            }
        });
    }
    let mut all = Vec::new();
    for mine in workers.join_all().await {
        all.extend(mine?);
    }
    // A worker may have looked while the last rows were locked by others; then they are left, and nothing is lost.
    all.extend(
        scene
            .work()
            .claim_batch("last", JOBS, LONG_LEASE)
            .await?
            .into_iter()
            .map(|job| job.id),
    );
    assert_eq!(all.len(), JOBS, "handed out more or less often than once");
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), JOBS);
    Ok(())
}

async fn jobs_come_in_the_order_of_their_next_attempt(scene: Scene) -> CaseResult {
    let delays = [90_u64, 30, 60];
    let late = delays.map(|ms| plain(&format!("after {ms}")).delay(Duration::from_millis(ms)));
    // In one transaction, so that a slow machine puts no time between them.
    let at_once = [plain("first"), plain("second")];
    scene.emit_jobs(late.into_iter().chain(at_once)).await?;
    scene.pass(Duration::from_millis(90)).await?;
    let jobs = scene.work().claim_batch("w", 10, LONG_LEASE).await?;
    let topics: Vec<&str> = jobs.iter().map(|job| job.topic.as_str()).collect();
    assert_eq!(topics, ["first", "second", "after 30", "after 60", "after 90"]);
    // A retry puts a job behind those that are due before it.
    let work = scene.work();
    // The soonest first: however long the marks take, the order of their times is the same.
    for (job, ms) in jobs.iter().zip([80, 60, 40, 20, 0]).rev() {
        work.mark_retry("w", job.claim, Duration::from_millis(ms), "later")
            .await?;
    }
    scene.pass(Duration::from_millis(80)).await?;
    let again = work.claim_batch("w", 2, LONG_LEASE).await?;
    let topics: Vec<&str> = again.iter().map(|job| job.topic.as_str()).collect();
    assert_eq!(
        topics,
        ["after 90", "after 60"],
        "the limit takes those that are due first"
    );
    Ok(())
}

async fn a_scheduled_job_waits_for_its_time(scene: Scene) -> CaseResult {
    scene
        .emit_jobs([plain("tomorrow").delay(Duration::from_secs(86_400))])
        .await?;
    scene.emit_jobs([plain("soon").delay(SHORT_LEASE)]).await?;
    let jobs = scene.claim_when_due("w", LONG_LEASE).await?;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].topic, "soon");
    assert_eq!(scene.work().job_counts().await?.pending, 1);
    Ok(())
}

async fn an_idempotency_key_makes_one_job(scene: Scene) -> CaseResult {
    let first = plain("t").idempotency_key("k");
    let id = first.id();
    assert_eq!(scene.emit_jobs([first.clone()]).await?, [Emitted::Stored { id }]);
    let second = scene.emit_jobs([plain("t").idempotency_key("k"), plain("t")]).await?;
    assert_eq!(second[0], Emitted::Duplicate { first: id });
    assert!(!second[1].is_duplicate());
    // The very same one again, by a producer that does not know how its commit ended.
    scene.emit_jobs([first]).await?;
    assert_eq!(scene.work().job_counts().await?.pending, 2);
    Ok(())
}

async fn a_worker_without_a_name_is_refused(scene: Scene) -> CaseResult {
    let refused = scene.work().claim_batch("", 1, LONG_LEASE).await;
    assert_eq!(refused.expect_err("it has no name").kind(), ErrorKind::Invalid);
    Ok(())
}

async fn jobs_are_counted_by_their_state(scene: Scene) -> CaseResult {
    let work = scene.work();
    scene.emit_jobs((0..7).map(|n| numbered("k", n))).await?;
    let jobs = work.claim_batch("w", 5, LONG_LEASE).await?;
    work.mark_retry("w", jobs[0].claim, LONG_LEASE, "no").await?;
    work.mark_failed("w", jobs[1].claim, "never").await?;
    assert_eq!(work.mark_success("w", &claims(&jobs[2..3])).await?, []);
    let counts = work.job_counts().await?;
    let expected = JobCounts {
        pending: 2,
        running: 2,
        retry: 1,
        completed: 0,
        failed: 1,
    };
    assert_eq!(counts, expected);
    Ok(())
}
