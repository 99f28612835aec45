//! A relay vanishes at the worst moment: during a settlement, on a host that disappears without closing connections, or
//! just before the clock of the database is set back. Another relay takes its lanes within the lease plus two seconds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod failover;
mod sandbox;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use failover::{Gate, PATIENCE, SINKS, Scene, count, emit, lanes_of, number, plain_orders, rows};
use rustix::process::Signal;
use sandbox::{Running, Sandbox, TestDatabase, block_on, test_variable, wait_until};
use sendoff::Message;
use sendoff_testkit::servers::{MariaDb, Postgres};
use sendoff_testkit::{Fault, FaultProxy};

const LEASE: Duration = Duration::from_secs(4);
/// A message whose failure was settled is due again soon.
const AGAIN: Duration = Duration::from_secs(1);
/// How long after the end of the lease the lanes may have no owner that works.
const GRACE: Duration = Duration::from_secs(2);
/// Extra time for a busy machine.
const SLACK: Duration = Duration::from_secs(5);
const COUNT: usize = 40;

/// How a relay vanishes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Its host loses its power: it is gone, and its connections stay open.
    Gone,
    /// It freezes, and continues later.
    Stopped,
}

#[test]
fn a_settlement_of_a_host_that_is_gone_does_not_keep_its_lanes() {
    freeze(Scene::new(Sandbox::postgres(), LEASE, AGAIN), End::Gone);
}

#[test]
fn a_settlement_of_a_relay_that_stands_still_does_not_keep_its_lanes() {
    freeze(Scene::new(Sandbox::postgres(), LEASE, AGAIN), End::Stopped);
}

#[test]
fn a_settlement_on_mysql_of_a_host_that_is_gone_does_not_keep_its_lanes() {
    freeze(Scene::new(Sandbox::mysql(), LEASE, AGAIN), End::Gone);
}

#[test]
fn a_settlement_on_mysql_of_a_relay_that_stands_still_does_not_keep_its_lanes() {
    freeze(Scene::new(Sandbox::mysql(), LEASE, AGAIN), End::Stopped);
}

#[test]
fn a_clock_that_is_set_back_does_not_keep_lanes_of_a_dead_relay() {
    let clock = Clock::new();
    let server = Postgres::start(&[], &clock.variables());
    let url = server.url();
    set_back(
        &clock,
        Sandbox::private(|schema| TestDatabase::Postgres { url, schema }),
    );
}

#[test]
fn a_clock_of_mariadb_that_is_set_back_does_not_keep_lanes_of_a_dead_relay() {
    let clock = Clock::new();
    let server = MariaDb::start(&clock.variables());
    let url = server.url();
    set_back(&clock, Sandbox::private(|schema| TestDatabase::Mysql { url, schema }));
}

/// One of two relays vanishes while it settles failed messages.
fn freeze(scene: Scene, end: End) {
    let place = scene.sandbox.place.clone();
    let port = port_of(&place.url());
    let wire = scene.runtime.block_on(FaultProxy::start(port));
    let mut victim = scene.relay("victim.log", Some(&wire.url(&place.url(), port)));
    scene.wait_for_lanes(&place, &victim, 80);
    // It has a connection for settlements from now on.
    scene.endpoint.set(Gate::Open);
    deliver(&scene, &place, &plain_orders(2), PATIENCE);
    scene.endpoint.set(Gate::Closed);
    let (orders, seen) = (plain_orders(COUNT), scene.endpoint.seen());
    emit(&place, &orders);
    wait_until("the sinks have the messages", PATIENCE, || {
        scene.endpoint.seen() == seen + COUNT * SINKS.len()
    });
    let heir = scene.relay("heir.log", None);
    scene.wait_for_lanes(&place, &heir, 1);

    let until = stop_in_settlement(&scene, &wire, &victim, end);
    let began = Instant::now();
    scene.endpoint.set(Gate::Open);
    wait_until("its lanes are taken", LEASE + GRACE + SLACK, || {
        lanes_of(&place, &victim) == Ok(0)
    });
    let late = clock_of(&place) - until;
    assert!(
        late < (GRACE + SLACK / 2).as_secs_f64(),
        "its lanes were taken {late} s after its lease"
    );
    let left = (LEASE + GRACE + SLACK).saturating_sub(began.elapsed());
    arrive(&scene, &orders, left);
    // Its locks are free again, too: no delivered message stays behind.
    wait_until("everything is settled", PATIENCE, || {
        count(&place, "outbox_message", "1 = 1") + count(&place, "outbox_waiting", "1 = 1") == 0
    });
    if end == End::Stopped {
        victim.signal(Signal::CONT);
        scene.wait_for_lanes(&place, &victim, 1);
        deliver(&scene, &place, &plain_orders(COUNT), PATIENCE);
        scene.stop(victim, "victim.log");
    } else {
        victim.end(PATIENCE);
    }
    assert_eq!(count(&place, "outbox_dead", "1 = 1"), 0);
    scene.stop(heir, "heir.log");
}

/// Stops the relay when its settlement has passed the fence, and returns the end of its lease, by the database's clock.
fn stop_in_settlement(scene: &Scene, wire: &FaultProxy, victim: &Running, end: End) -> f64 {
    let place = &scene.sandbox.place;
    let until = || {
        let seconds = match place {
            TestDatabase::Mysql { .. } => "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', until) / 1000000",
            _ => "extract(epoch FROM until)::float8",
        };
        let sql = format!(
            "SELECT {seconds} FROM outbox_relay WHERE name LIKE '%:{}'",
            victim.0.id()
        );
        number(place, &sql)
    };
    let vanish = || match end {
        End::Gone => {
            wire.set(Fault::Freeze);
            victim.signal(Signal::KILL);
        }
        End::Stopped => {
            victim.signal(Signal::STOP);
            wire.set(Fault::Pass);
        }
    };
    if let TestDatabase::Mysql { url, schema } = place {
        // A statement of the settlement waits for the rows that are locked here; it ends when the relay is gone.
        block_on(async {
            use mysql_async::prelude::Queryable;
            let mut lock = mysql_async::Conn::from_url(url).await.unwrap();
            let sql = format!("START TRANSACTION; SELECT id FROM {schema}.outbox_message FOR UPDATE");
            lock.query_drop(sql).await.unwrap();
            scene.endpoint.set(Gate::All(500));
            // Not by INNODB_TRX: that is a cache, which is not refreshed while it is queried repeatedly.
            let waits = format!(
                "SELECT count(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND time_ms > 300 \
                 AND info LIKE '%{schema}%outbox_message%' AND (info LIKE '%INSERT INTO%' OR info LIKE '%DELETE m%')"
            );
            wait_until("a settlement waits", PATIENCE, || number(place, &waits) > 0.0);
            vanish();
            lock.query_drop("ROLLBACK").await.unwrap();
            lock.disconnect().await.unwrap();
        });
    } else {
        // The answer of the fence does not arrive, so that the rest of the settlement is not sent.
        wire.set(Fault::HoldAnswers);
        scene.endpoint.set(Gate::All(500));
        wait_until("a settlement is under way", PATIENCE, || {
            in_transaction(place) || count(place, "outbox_waiting", "true") > 0
        });
        vanish();
    }
    assert!(lanes_of(place, victim).unwrap() > 0, "it had no lanes any more");
    assert!(
        !scene.has_logged("victim.log", "lease_lost"),
        "it had lost its lease before"
    );
    until()
}

/// Whether a relay has begun a settlement and not ended it.
fn in_transaction(place: &TestDatabase) -> bool {
    let TestDatabase::Postgres { schema, .. } = place else {
        return false;
    };
    let sql = format!(
        "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%{schema}%check_lanes%'"
    );
    !rows(place, &sql).is_empty()
}

/// One of two relays is killed, and the clock of the database goes back by an hour.
fn set_back(clock: &Clock, sandbox: Sandbox) {
    let scene = Scene::new(sandbox, LEASE, AGAIN);
    let place = scene.sandbox.place.clone();
    scene.endpoint.set(Gate::Open);
    let (mut victim, heir) = (scene.relay("victim.log", None), scene.relay("heir.log", None));
    for relay in [&victim, &heir] {
        scene.wait_for_lanes(&place, relay, 40);
    }
    let before = clock_of(&place);
    victim.signal(Signal::KILL);
    victim.end(PATIENCE);
    clock.set("-3600");
    wait_until("the database's clock has gone back", PATIENCE, || {
        clock_of(&place) < before - 3000.0
    });
    deliver(&scene, &place, &plain_orders(COUNT), LEASE + GRACE + SLACK);
    assert_eq!(lanes_of(&place, &victim), Ok(0));
    scene.stop(heir, "heir.log");
}

fn deliver(scene: &Scene, place: &TestDatabase, messages: &[Message], limit: Duration) {
    emit(place, messages);
    arrive(scene, messages, limit);
}

/// Waits until every sink has these.
#[track_caller]
fn arrive(scene: &Scene, messages: &[Message], limit: Duration) {
    let began = Instant::now();
    loop {
        let missing = SINKS.iter().map(|sink| {
            let taken = scene.endpoint.taken(sink);
            let is_missing = |message: &&Message| !taken.contains(&message.id().to_string());
            messages.iter().filter(is_missing).count()
        });
        let missing: Vec<usize> = missing.collect();
        if missing.iter().all(|count| *count == 0) {
            return;
        }
        let waited = began.elapsed();
        assert!(
            waited < limit,
            "{missing:?} of {} are missing after {waited:?}: {}",
            messages.len(),
            scene.sandbox.read("heir.log")
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Seconds since 1970 on the database's clock.
fn clock_of(place: &TestDatabase) -> f64 {
    number(
        place,
        match place {
            TestDatabase::Mysql { .. } => "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000",
            _ => "SELECT extract(epoch FROM clock_timestamp())::float8",
        },
    )
}

fn port_of(url: &str) -> u16 {
    let after_host = url.rsplit_once(':').unwrap().1;
    let digits: String = after_host.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// The clock of a server that runs under libfaketime.
struct Clock {
    library: String,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Clock {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(test_variable("SENDOFF_TEST_SCRATCH")).unwrap();
        // The server has another account.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let clock = Self {
            library: test_variable("SENDOFF_TEST_FAKETIME_LIB"),
            file: folder.path().join("clock"),
            _folder: folder,
        };
        clock.set("+0");
        clock
    }

    /// Sets the offset in seconds.
    fn set(&self, offset: &str) {
        // Atomically: the server may read the file at any moment.
        let new = self.file.with_extension("new");
        std::fs::write(&new, offset).unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::rename(new, &self.file).unwrap();
    }

    fn variables(&self) -> [(&str, &str); 4] {
        [
            ("LD_PRELOAD", &self.library),
            ("FAKETIME_TIMESTAMP_FILE", self.file.to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
    }
}
