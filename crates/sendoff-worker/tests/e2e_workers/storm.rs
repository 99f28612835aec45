//! The test itself.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sendoff::Message;
use sendoff::store::{Claim, JobCounts, WorkStore};

use crate::base::Base;
use crate::child::{AWAY, SLOW};
use crate::journal::{Event, read_all};
use crate::process::Process;

const PROCESSES: usize = 8;
/// Of them, those that are never killed: they are often slower than their lease, and live to be told so.
const SPARED: usize = 2;
const JOBS: u64 = 10_000;
/// How many are emitted at a time, as soon as half as many are left.
const WAVE: u64 = 1_000;
/// Longer than any run takes on a machine with other work.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn every_job_is_finished_once_by_a_worker_that_holds_it(base: &Base) {
    let seed = fastrand::u64(..);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(base.migrate());
    let journals = base.folder.path().join("journals");
    std::fs::create_dir(&journals).unwrap();
    let began = Instant::now();
    let kills = storm(base, &journals, seed, |emitted| {
        runtime.block_on(async {
            let counts = store.job_counts().await.unwrap();
            // What is left behind by a worker is due before what is emitted later: so it is handed out again soon, while
            // the worker that lost it may still come back.
            if counts.pending < WAVE / 2 && *emitted < JOBS {
                emit(&store, *emitted..*emitted + WAVE).await;
                *emitted += WAVE;
            }
            counts
        })
    });
    let took = began.elapsed();
    let rows = runtime.block_on(base.rows());
    assert_eq!(rows.len() as u64, JOBS);
    assert!(rows.iter().all(|row| row.state == "completed"), "something is left");
    let finished_by = rows.iter().map(|row| (row.seq, (row.claim, row.attempts))).collect();
    let events = read_all(&journals);
    check(&finished_by, &events);
    let count = |event| events.iter().filter(|(of, ..)| *of == event).count();
    let (handed, refused) = (count(Event::Handed), count(Event::Refused));
    println!("seed {seed}: {kills} kills, {handed} hand-outs of {JOBS} jobs, {refused} refused marks, {took:?}");
    assert!(kills >= 20, "too few kills to prove anything: {kills}");
    assert!(handed as u64 > JOBS, "the kills hit nobody");
    assert!(refused > 0, "nobody was slower than its lease");
}

async fn emit(store: &Arc<dyn WorkStore>, numbers: std::ops::Range<u64>) {
    let jobs: Vec<Message> = numbers
        .map(|n| Message::json("t", &n).unwrap().max_attempts(10_000))
        .collect();
    let mut transaction = store.begin_jobs().await.unwrap();
    transaction.emit(&jobs).await.unwrap();
    transaction.commit().await.unwrap();
}

/// Kills and stops processes until every job is completed; tells how many were killed. `tend` emits what is still to be
/// emitted, and counts.
fn storm(base: &Base, journals: &Path, seed: u64, tend: impl Fn(&mut u64) -> JobCounts) -> usize {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut started = 0;
    let mut start = |name: String| {
        started += 1;
        // Half by the ready-made loop, half by hand.
        let by_hand = name.starts_with(SLOW) || started % 2 == 0;
        Process::start(base, journals, started, name, by_hand)
    };
    let name = |place: usize| if place < SPARED { SLOW } else { "worker" };
    let mut places: Vec<Process> = (0..PROCESSES)
        .map(|place| start(format!("{} {place}", name(place))))
        .collect();
    let mut stopped: Vec<(usize, Instant)> = Vec::new();
    let (began, mut kills, mut emitted) = (Instant::now(), 0, 0);
    loop {
        let now = tend(&mut emitted);
        if now.completed == JOBS {
            return kills;
        }
        assert!(
            began.elapsed() < LIMIT,
            "stuck after {kills} kills: {now:?}; seed {seed}"
        );
        std::thread::sleep(Duration::from_millis(rng.u64(20..80)));
        // Those that were stopped for longer than their lease go on, as if nothing had happened.
        let due = |(_, since): &(usize, Instant)| since.elapsed() > AWAY;
        for (place, _) in stopped.extract_if(.., |stop| due(stop)) {
            places[place].signal(Signal::CONT);
        }
        let place = rng.usize(..PROCESSES);
        if stopped.iter().any(|(of, _)| *of == place) {
            continue;
        }
        places[place].assert_alive();
        if places[place].is_by_hand() && stopped.len() < 2 && rng.u8(..4) == 0 {
            places[place].signal(Signal::STOP);
            stopped.push((place, Instant::now()));
            continue;
        }
        if place < SPARED {
            continue;
        }
        places[place].kill();
        kills += 1;
        // Half of the new ones have the name of the old: only their claims tell them apart.
        places[place] = start(match kills % 2 {
            0 => format!("worker {place}"),
            _ => format!("worker {place}, {kills}"),
        });
    }
}

/// Holds what the processes wrote down against the hand-outs that finished the jobs.
fn check(finished_by: &HashMap<i64, (i64, i64)>, events: &[(Event, Claim, i64)]) {
    let mut handed = HashSet::new();
    for (event, Claim { seq, number }, attempt) in events {
        let (finisher, attempts) = finished_by[seq];
        match event {
            Event::Handed => {
                handed.insert((*seq, *number));
                // Numbers come by chance; attempts are counted.
                assert!(
                    *number == finisher || *attempt < attempts,
                    "job {seq} was finished by hand-out {finisher}, although it had been handed out again as {number}"
                );
            }
            Event::Finished => assert_eq!(*number, finisher, "job {seq} was finished twice"),
            Event::Refused => assert_ne!(
                *number, finisher,
                "the mark of job {seq} was refused, and yet finished it"
            ),
        }
    }
    for (seq, (number, _)) in finished_by {
        assert!(
            handed.contains(&(*seq, *number)),
            "job {seq} was finished by hand-out {number}, which nobody had"
        );
    }
}
