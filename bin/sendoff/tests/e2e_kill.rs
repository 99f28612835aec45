//! Three relays that are killed repeatedly, with a sink that is down from time to time, lose nothing, invent nothing,
//! and keep the order of every key.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail like tests"
)]

mod sandbox;

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use rustix::process::Signal;
use sandbox::{Running, Sandbox, TestDatabase, connect, lines, wait_until};
use sendoff::Message;
use sendoff::emit::Names;
use sendoff::store::{EmitStore, Filter, OperateStore};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use sendoff_testkit::Recorder;
use sendoff_testkit::history::{Findings, Sent};
use serde_json::{Value, json};

const RELAYS: usize = 3;
const PRODUCERS: usize = 4;
const KEYS: usize = 200;
/// How many messages a relay may have in flight, and so how many one kill may send again.
const WINDOW: usize = 16;

#[test]
fn killed_relays_lose_nothing_and_keep_the_order() {
    kill_relays(Sandbox::postgres(), 200);
}

#[test]
fn killed_relays_on_mysql_lose_nothing_and_keep_the_order() {
    kill_relays(Sandbox::mysql(), 80);
}

fn kill_relays(sandbox: Sandbox, kills: usize) {
    let sandbox = sandbox.migrated();
    std::fs::create_dir(sandbox.path("out")).unwrap();
    let out = sandbox.path("out/out.jsonl");
    sandbox.configure(&format!(
        "[relay]\nlease = \"2s\"\nheartbeat = \"300ms\"\nbatch = {batch}\nmax_in_flight = {WINDOW}\nidle_time = \"20ms\"\n\
         [[sink]]\nname = \"out\"\ntype = \"file\"\npath = {out:?}\nfsync = false\nbatch = {batch}\n\
         [[route]]\nmatch = \"*\"\nto = [\"out\"]\n",
        batch = WINDOW / 2,
    ));

    let load = Load::start(&sandbox.place);
    let mut relays: Vec<Running> = (0..RELAYS).map(|_| relay(&sandbox)).collect();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for kill in 0..kills {
        // Without its folder the sink is down: messages fail, and later messages of their keys are blocked.
        match kill % 10 {
            5 => std::fs::rename(sandbox.path("out"), sandbox.path("away")).unwrap(),
            7 => std::fs::rename(sandbox.path("away"), sandbox.path("out")).unwrap(),
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(rng.u64(100..300)));
        let victim = rng.usize(..RELAYS);
        relays[victim].signal(Signal::KILL);
        relays[victim].end(Duration::from_secs(10));
        relays[victim] = relay(&sandbox);
    }
    let recorder = load.stop();

    // A message that several relays were killed on is treated as one that crashes relays: it becomes a dead letter and
    // blocks its key until an operator retries it.
    let begin = Instant::now();
    let mut retried = 0;
    wait_until("everything is delivered", Duration::from_secs(90), || {
        let answer = sandbox.json(&["dead", "retry", "--all"]);
        retried += answer["retried"].as_u64().unwrap();
        left(&sandbox.place) == 0
    });
    let drained = begin.elapsed();
    for relay in &relays {
        relay.signal(Signal::TERM);
    }
    for relay in &mut relays {
        assert_eq!(
            relay.end(Duration::from_secs(30)).code(),
            Some(0),
            "{}",
            sandbox.read("relay.log")
        );
    }

    let arrivals = lines(&out);
    for sent in sent(&arrivals) {
        recorder.arrived(sent);
    }
    let history = recorder.history();
    let findings = history.check();
    println!(
        "{kills} kills, {} transactions, {} arrivals, drained in {drained:?}, {retried} set aside and retried; {findings}",
        history.transactions.len(),
        arrivals.len()
    );
    assert!(
        findings.is_sound(),
        "{findings}; the relays said:\n{}",
        said(&sandbox.read("relay.log"), &of_inversions(&findings, &arrivals))
    );
    assert!(history.arrivals.len() > 1000, "too little happened to prove anything");
    assert!(findings.duplicates.len() <= kills * WINDOW, "{findings}");
    every_copy_has_the_same_id(&arrivals);
}

/// The report, reduced to the history of these messages.
fn said(log: &str, ids: &[&str]) -> String {
    let matters = |line: &&str| {
        let of_a_message = ["message_failed", "row_step", "sink_down"];
        !of_a_message.iter().any(|event| line.contains(event)) || ids.iter().any(|id| line.contains(id))
    };
    log.lines().filter(matters).collect::<Vec<_>>().join("\n")
}

/// The ids of all messages of keys whose order is wrong.
fn of_inversions<'a>(findings: &Findings, arrivals: &'a [Value]) -> Vec<&'a str> {
    let keys: Vec<&str> = findings.inversions.iter().map(|pair| &*pair.early.key).collect();
    let wrong = |line: &&Value| keys.contains(&line["key"].as_str().unwrap());
    arrivals
        .iter()
        .filter(wrong)
        .map(|line| line["id"].as_str().unwrap())
        .collect()
}

fn relay(sandbox: &Sandbox) -> Running {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(sandbox.path("relay.log"))
        .unwrap();
    Running::start(
        sandbox
            .command(["relay", "--log-level", "trace"])
            .stdout(Stdio::null())
            .stderr(log),
    )
}

/// How many messages have not been delivered.
fn left(place: &TestDatabase) -> u64 {
    let place = place.clone();
    sandbox::block_on(async move { stores(&place).1.count(&Filter::default()).await.unwrap() })
}

/// The outbox as producers and as operators use it, on connections that [`break_connections`] finds.
fn stores(place: &TestDatabase) -> (Arc<dyn EmitStore>, Arc<dyn OperateStore>) {
    let names = |schema: &str| Names::new(Some(schema), Names::PREFIX).unwrap();
    match place {
        TestDatabase::Postgres { url, schema } => {
            let config = PostgresConfig::new(url).names(names(schema)).application_name(schema);
            let store = Arc::new(PostgresStore::new(config).unwrap());
            (store.clone(), store)
        }
        TestDatabase::Mysql { url, schema } => {
            let (server, _) = url.rsplit_once('/').unwrap();
            let config = MysqlConfig::new(format!("{server}/{schema}")).names(names(schema));
            let store = Arc::new(MysqlStore::new(config).unwrap());
            (store.clone(), store)
        }
        TestDatabase::Sqlite(_) => panic!("a file has no connections to break"),
    }
}

fn sent(arrivals: &[Value]) -> Vec<Sent> {
    let of = |line: &Value| Sent::new(line["key"].as_str().unwrap(), line["payload"]["n"].as_u64().unwrap());
    arrivals.iter().map(of).collect()
}

fn every_copy_has_the_same_id(arrivals: &[Value]) {
    let mut ids: HashMap<Sent, &str> = HashMap::new();
    for (sent, line) in sent(arrivals).into_iter().zip(arrivals) {
        let id = line["id"].as_str().unwrap();
        assert_eq!(*ids.entry(sent).or_insert(id), id);
    }
}

/// Producers, each with its own connection that is broken from time to time.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
    recorder: Recorder,
}

impl Load {
    fn start(place: &TestDatabase) -> Self {
        let (stop, recorder) = (Arc::new(AtomicBool::new(false)), Recorder::new());
        let numbers: Arc<Vec<AtomicU64>> = Arc::new((0..KEYS).map(|_| AtomicU64::new(0)).collect());
        let mut threads: Vec<_> = (0..PRODUCERS)
            .map(|_| {
                let producer = Producer {
                    store: stores(place).0,
                    recorder: recorder.clone(),
                    numbers: numbers.clone(),
                };
                let stop = stop.clone();
                std::thread::spawn(move || on_a_runtime(producer.produce(&stop)))
            })
            .collect();
        let (breaker, place) = (stop.clone(), place.clone());
        threads.push(std::thread::spawn(move || {
            on_a_runtime(break_connections(&place, &breaker));
        }));
        Self {
            stop,
            threads,
            recorder,
        }
    }

    fn stop(self) -> Recorder {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.recorder
    }
}

fn on_a_runtime(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

/// Ends a producer's connection about once per second, so that some commits are never answered.
async fn break_connections(place: &TestDatabase, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(500..1500))).await;
        match place {
            TestDatabase::Postgres { url, schema } => {
                let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 \
                           ORDER BY random() LIMIT 1";
                connect(url).await.execute(sql, &[schema]).await.unwrap();
            }
            TestDatabase::Mysql { url, schema } => {
                let mut conn = mysql_async::Conn::from_url(url).await.unwrap();
                let sql = "SELECT id FROM information_schema.processlist WHERE db = ? ORDER BY RAND() LIMIT 1";
                let found: Option<u64> = conn.exec_first(sql, (schema,)).await.unwrap();
                if let Some(id) = found {
                    // It may already have ended.
                    let _ = conn.query_drop(format!("KILL {id}")).await;
                }
            }
            TestDatabase::Sqlite(_) => {}
        }
    }
}

struct Producer {
    store: Arc<dyn EmitStore>,
    recorder: Recorder,
    /// The next number of each key.
    numbers: Arc<Vec<AtomicU64>>,
}

impl Producer {
    async fn produce(self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            // A failed one may still have been committed: the recorder knows.
            let _ = self.transaction().await;
            tokio::time::sleep(Duration::from_millis(fastrand::u64(10..40))).await;
        }
    }

    /// One transaction with one to three messages. Some take their time before the commit, so that later ones overtake
    /// them; one in ten is rolled back.
    async fn transaction(&self) -> sendoff::Result<()> {
        let mut record = self.recorder.begin();
        let mut tx = self.store.begin().await?;
        for _ in 0..fastrand::usize(1..=3) {
            let key = fastrand::usize(..KEYS);
            let n = self.numbers[key].fetch_add(1, Ordering::Relaxed);
            let name = format!("key-{key}");
            record.emit(Sent::new(&name, n));
            let message = Message::json("load.message", &json!({"n": n}))?.key(name);
            tx.emit(&[message]).await?;
        }
        if fastrand::u8(..20) == 0 {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(..100))).await;
        }
        if fastrand::u8(..10) == 0 {
            tx.rollback().await?;
            record.rolled_back();
        } else {
            record.committing();
            tx.commit().await?;
            record.committed();
        }
        Ok(())
    }
}
