//! A database server is replaced, or restarts without its last commits, while messages are with slow sinks. The new
//! server reuses numbers, so that new messages have the numbers of old ones: the outcome of an old message must not be
//! applied to a new one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod failover;
mod sandbox;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use failover::{AT_ONCE, Entry, Gate, PATIENCE, SINKS, Scene};
use failover::{assert_accounted, count, emit, new_orders, old_orders, ready, try_emit};
use sandbox::{Running, Sandbox, TestDatabase, wait_until};
use sendoff::Message;
use sendoff_testkit::servers::{MariaDb, Postgres};
use sendoff_testkit::{Fault, FaultProxy};

/// Longer than a failover takes, so that the relay still holds its lanes on the new server.
const LEASE: Duration = Duration::from_secs(20);

/// A message that has failed stays where it is.
const AGAIN: Duration = Duration::from_secs(3600);

/// How long the messages of the new server may take: twice the lease, in case the relay must wait for its own lanes.
const LIMIT: Duration = Duration::from_secs(40);

/// When the sinks begin to answer.
#[derive(Clone, Copy)]
enum Answers {
    /// As soon as the new messages exist.
    AtOnce,
    /// When the relay has seen that it is another server.
    WhenNoticed,
}

#[test]
fn a_promoted_standby_loses_none_of_its_own_messages() {
    let mut failing = PostgresPair::start();
    let scene = Scene::new(failing.sandbox(), LEASE, AGAIN);
    let (old, new) = failing.places(&scene);
    let relay = start(&scene, &old);
    failing.primary.wait_until_followed(&failing.standby);
    failing.link.set(Fault::Refuse);
    let before = hand_out(&scene, &old);
    failing.fail_over();
    check(&scene, &new, &before, relay, Answers::AtOnce);
}

#[test]
fn a_promoted_standby_that_the_relay_has_noticed_loses_none_of_its_own_messages() {
    let mut failing = PostgresPair::start();
    let scene = Scene::new(failing.sandbox(), LEASE, AGAIN);
    let (old, new) = failing.places(&scene);
    let relay = start(&scene, &old);
    failing.primary.wait_until_followed(&failing.standby);
    failing.link.set(Fault::Refuse);
    let before = hand_out(&scene, &old);
    failing.fail_over();
    check(&scene, &new, &before, relay, Answers::WhenNoticed);
}

#[test]
fn a_server_that_comes_back_without_its_last_commits_loses_no_later_ones() {
    let mut server = Postgres::start(&["synchronous_commit=off", "wal_writer_delay=10s"], &[]);
    let scene = Scene::new(on_postgres(server.url()), LEASE, AGAIN);
    let place = scene.sandbox.place.clone();
    let relay = start(&scene, &place);
    // From here on nothing is written to the write-ahead log any more.
    server.sql("CHECKPOINT");
    server.stop_wal_writer();
    let before = hand_out(&scene, &place);
    server.kill();
    server.restart();
    assert_eq!(ready(&place), [], "the commits were to be lost");
    check(&scene, &place, &before, relay, Answers::AtOnce);
}

#[test]
fn a_promoted_replica_of_mariadb_loses_none_of_its_own_messages() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut primary = MariaDb::start(&[]);
    let link = runtime.block_on(FaultProxy::start(primary.port()));
    let replica = primary.replica(link.port());
    // One address for the current primary, like a proxy in front of both.
    let address = runtime.block_on(FaultProxy::start(primary.port()));
    let url = address.url(&primary.url(), primary.port());
    let scene = Scene::new(
        Sandbox::private(|schema| TestDatabase::Mysql { url, schema }),
        LEASE,
        AGAIN,
    );
    let old = scene.sandbox.place.at(primary.url());
    let new = scene.sandbox.place.at(replica.url());
    let relay = start(&scene, &old);
    primary.wait_until_followed(&replica);
    link.set(Fault::Refuse);
    let before = hand_out(&scene, &old);
    primary.kill();
    replica.promote();
    assert_eq!(ready(&new), [], "the replica was to have none of them");
    address.lead_to(replica.port());
    address.cut();
    check(&scene, &new, &before, relay, Answers::AtOnce);
}

/// A commit that a synchronous standby has confirmed is on the new primary, so it is delivered.
#[test]
fn a_synchronous_standby_loses_nothing_that_was_committed() {
    let mut failing = PostgresPair::start();
    failing.primary.wait_for_standby();
    let scene = Scene::new(failing.sandbox(), LEASE, AGAIN);
    let (old, new) = failing.places(&scene);
    scene.endpoint.set(Gate::Open);
    let relay = start(&scene, &old);
    let (committed, over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let produce = |place: &TestDatabase, prefix: &str, most: usize| {
        for n in 0..most {
            let message = Message::json("order.taken", &n)
                .unwrap()
                .key(format!("{prefix}-{}", n % 7));
            if over.load(Ordering::SeqCst) || try_emit(place, std::slice::from_ref(&message)).is_err() {
                return;
            }
            committed.lock().unwrap().push(message.id().to_string());
        }
    };
    std::thread::scope(|scope| {
        let producers: Vec<_> = ["a", "b", "c"]
            .map(|name| (name, old.clone()))
            .into_iter()
            .map(|(name, old)| scope.spawn(move || produce(&old, name, 10_000)))
            .collect();
        wait_until("enough was committed", PATIENCE, || {
            committed.lock().unwrap().len() >= 100
        });
        failing.primary.kill();
        over.store(true, Ordering::SeqCst);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
    failing.standby.promote();
    over.store(false, Ordering::SeqCst);
    produce(&new, "after", 50);
    let committed = committed.into_inner().unwrap();
    let mut missing = Vec::new();
    for sink in SINKS {
        let began = std::time::Instant::now();
        loop {
            let taken = scene.endpoint.taken(sink);
            missing = committed.iter().filter(|id| !taken.contains(id)).collect();
            if missing.is_empty() || began.elapsed() > LIMIT {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(
            missing.is_empty(),
            "{} of {} never came to {sink}",
            missing.len(),
            committed.len()
        );
    }
    drop(missing);
    scene.stop(relay, "relay.log");
}

/// The kernel of a primary whose host hangs still accepts connections; the second host must be tried anyway.
#[test]
fn a_first_host_that_hangs_does_not_hide_the_second() {
    let failing = PostgresPair::start();
    let scene = Scene::new(failing.sandbox(), LEASE, AGAIN);
    failing.primary.wait_until_followed(&failing.standby);
    failing.primary.pause();
    failing.standby.promote();
    let stats = scene.sandbox.run(["stats", "--json"]);
    assert_eq!(stats.code, 0, "{stats:?}");
}

/// A primary and its standby, with a wire in between that can be cut.
struct PostgresPair {
    primary: Postgres,
    standby: Postgres,
    link: FaultProxy,
    _runtime: tokio::runtime::Runtime,
}

impl PostgresPair {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let primary = Postgres::start(&[], &[]);
        let link = runtime.block_on(FaultProxy::start(primary.port()));
        let standby = primary.standby(link.port());
        Self {
            primary,
            standby,
            link,
            _runtime: runtime,
        }
    }

    /// The outbox on the server that takes writes, with the URL from the page about failovers.
    fn sandbox(&self) -> Sandbox {
        let page = include_str!("../../../docs/failover.md");
        let url = page.lines().find_map(|line| line.strip_prefix("url = \"postgres://"));
        let url = url.unwrap().trim_end_matches('"');
        let (hosts, options) = url.split_once('?').unwrap();
        assert_eq!(hosts, "sendoff@db1:5432,db2:5432/shop");
        let [first, second] = [&self.primary, &self.standby].map(|server| format!("127.0.0.1:{}", server.port()));
        on_postgres(format!("postgres://postgres@{first},{second}/postgres?{options}"))
    }

    /// The outbox on each of the two.
    fn places(&self, scene: &Scene) -> (TestDatabase, TestDatabase) {
        let at = |server: &Postgres| scene.sandbox.place.at(server.url());
        (at(&self.primary), at(&self.standby))
    }

    /// Kills the primary and promotes the standby.
    fn fail_over(&mut self) {
        self.primary.kill();
        self.standby.promote();
    }
}

fn on_postgres(url: String) -> Sandbox {
    Sandbox::private(|schema| TestDatabase::Postgres { url, schema })
}

/// Starts a relay and waits until it holds all lanes.
fn start(scene: &Scene, at: &TestDatabase) -> Running {
    let relay = scene.relay("relay.log", None);
    scene.wait_for_lanes(at, &relay, 80);
    relay
}

/// Emits messages that the server will lose, and waits until the sinks have as many as they can have at the same time.
fn hand_out(scene: &Scene, at: &TestDatabase) -> Vec<Entry> {
    emit(at, &old_orders());
    wait_until("the sinks have the messages", PATIENCE, || {
        scene.endpoint.seen() == AT_ONCE * SINKS.len()
    });
    ready(at)
}

/// Emits messages on the new server, lets the sinks answer, and checks the outcome of each message.
fn check(scene: &Scene, at: &TestDatabase, before: &[Entry], relay: Running, answers: Answers) {
    emit(at, &new_orders());
    let now = ready(at);
    let repeats = |entry: &&Entry| before.iter().any(|old| (old.lane, old.seq) == (entry.lane, entry.seq));
    let repeated = now.iter().filter(repeats).count();
    assert!(
        repeated * 2 >= now.len(),
        "only {repeated} of {} numbers repeat",
        now.len()
    );
    if let Answers::WhenNoticed = answers {
        wait_until("the relay notices the new server", PATIENCE, || {
            scene.has_logged("relay.log", "history_changed")
        });
    }
    scene.endpoint.set(Gate::Open);
    assert_accounted(at, &scene.endpoint, &now, LIMIT);
    assert_eq!(count(at, "outbox_message", "true"), 0);
    keys_are_in_order(scene, &now);
    assert!(
        scene.has_logged("relay.log", "history_changed"),
        "{}",
        scene.sandbox.read("relay.log")
    );
    scene.stop(relay, "relay.log");
}

/// Messages of one key came to each sink in the order of their numbers.
fn keys_are_in_order(scene: &Scene, entries: &[Entry]) {
    for sink in SINKS {
        let taken = scene.endpoint.taken(sink);
        let mut arrived = std::collections::BTreeMap::<&str, Vec<(usize, u64)>>::new();
        for entry in entries.iter().filter(|entry| !entry.key.is_empty()) {
            let place = taken.iter().position(|id| *id == entry.id).unwrap();
            arrived.entry(&entry.key).or_default().push((place, entry.seq));
        }
        for (key, mut arrivals) in arrived {
            arrivals.sort_unstable();
            let numbers: Vec<u64> = arrivals.iter().map(|(_, seq)| *seq).collect();
            assert!(numbers.is_sorted(), "{key} came to {sink} as {numbers:?}");
        }
    }
}
