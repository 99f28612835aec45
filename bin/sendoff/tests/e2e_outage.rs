//! Outages with real servers: they cost seconds, two lines of the log, and no message.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod failover;
mod sandbox;

use std::process::Stdio;
use std::time::{Duration, Instant};

use failover::{PATIENCE, count, lanes_of};
use sandbox::{Running, Sandbox, TestDatabase, lines, wait_until};
use sendoff_testkit::servers::{RabbitMq, Redis};
use sendoff_testkit::{Fault, FaultProxy};
use serde_json::Value;
use tokio::runtime::Runtime;

/// A relay on PostgreSQL behind a proxy that can be cut, with a broker.
struct Scene {
    sandbox: Sandbox,
    wire: FaultProxy,
    runtime: Runtime,
}

impl Scene {
    fn new(runtime: Runtime, sink: &str) -> Self {
        let sandbox = Sandbox::postgres();
        let port = port_of(&sandbox.place.url());
        let wire = runtime.block_on(FaultProxy::start(port));
        sandbox.configure(&format!(
            "[relay]\nlease = \"2s\"\nheartbeat = \"300ms\"\n[log]\nformat = \"json\"\nlevel = \"info\"\n\
             [[sink]]\nname = \"broker\"\n{sink}\n[[route]]\nmatch = \"*\"\nto = [\"broker\"]\n"
        ));
        sandbox.ok(["migrate"]);
        Self { sandbox, wire, runtime }
    }

    fn relay(&self) -> Running {
        let url = self.sandbox.place.url();
        let url = self.wire.url(&url, port_of(&url));
        let file = std::fs::File::create(self.sandbox.path("relay.log")).unwrap();
        let mut command = self.sandbox.command(["relay"]);
        command.env("SENDOFF_DATABASE__URL", url);
        let relay = Running::start(command.stdout(Stdio::null()).stderr(file));
        wait_until("it has its lanes", PATIENCE, || {
            lanes_of(self.place(), &relay).is_ok_and(|lanes| lanes == 80)
        });
        relay
    }

    fn place(&self) -> &TestDatabase {
        &self.sandbox.place
    }

    /// Lines of the log, starting at a number.
    fn log(&self, from: usize) -> Vec<Value> {
        lines(&self.sandbox.path("relay.log")).split_off(from)
    }

    /// Waits until fewer than this many messages are left.
    #[track_caller]
    fn wait_for_less(&self, than: usize) {
        let begun = Instant::now();
        while self.pending() >= than {
            let log = || self.sandbox.read("relay.log");
            assert!(begun.elapsed() < PATIENCE, "{} are left: {}", self.pending(), log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn pending(&self) -> usize {
        count(self.place(), "outbox_message", "1 = 1") + count(self.place(), "outbox_waiting", "1 = 1")
    }

    #[track_caller]
    fn stop(&self, mut relay: Running) {
        relay.signal(rustix::process::Signal::TERM);
        assert_eq!(
            relay.end(PATIENCE).code(),
            Some(0),
            "{}",
            self.sandbox.read("relay.log")
        );
        assert_eq!(count(self.place(), "outbox_dead", "1 = 1"), 0);
    }
}

fn port_of(url: &str) -> u16 {
    let digits: String = url
        .rsplit(':')
        .next()
        .unwrap()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap()
}

fn events(log: &[Value]) -> Vec<&str> {
    log.iter().filter_map(|line| line["event"].as_str()).collect()
}

#[test]
fn a_stopped_redis_and_a_database_that_is_away_five_times_make_no_dead_letters() {
    let runtime = Runtime::new().unwrap();
    let redis = runtime.block_on(Redis::start());
    let scene = Scene::new(
        runtime,
        &format!("type = \"redis\"\nurl = {:?}\ntimeout = \"3s\"", redis.url()),
    );
    let relay = scene.relay();
    redis.pause();
    for n in 0..10 {
        scene
            .sandbox
            .emit(&["order.placed", "--key", &format!("key-{n}"), "--payload", "{}"]);
    }
    for _ in 0..5 {
        // The messages are in flight: their answers do not arrive.
        std::thread::sleep(Duration::from_millis(1000));
        scene.wire.set(Fault::Refuse);
        std::thread::sleep(Duration::from_millis(2500));
        scene.wire.set(Fault::Pass);
    }
    redis.resume();
    scene.wait_for_less(1);
    let crashed = failover::rows(scene.place(), "SELECT count(*) FROM outbox_lane WHERE crashed_by <> ''");
    assert_eq!(crashed[0][0], "0", "no relay has died");
    scene.stop(relay);
}

#[test]
fn an_outage_of_the_database_is_two_lines_and_ends_soon() {
    let runtime = Runtime::new().unwrap();
    let redis = runtime.block_on(Redis::start());
    let scene = Scene::new(runtime, &format!("type = \"redis\"\nurl = {:?}", redis.url()));
    let relay = scene.relay();
    scene.sandbox.emit(&["order.placed", "--payload", "{}"]);
    scene.wait_for_less(1);
    let before = scene.log(0).len();
    scene.wire.set(Fault::Refuse);
    std::thread::sleep(Duration::from_secs(8));
    scene.sandbox.emit(&["order.placed", "--payload", "{}"]);
    let begun = Instant::now();
    scene.wire.set(Fault::Pass);
    scene.wait_for_less(1);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    wait_until("the end is logged", PATIENCE, || {
        events(&scene.log(before)).contains(&"store_up")
    });
    let log = scene.log(before);
    let loud: Vec<&Value> = log.iter().filter(|line| line["level"] != "INFO").collect();
    let told: Vec<&str> = events(&log)
        .into_iter()
        .filter(|event| event.starts_with("store_"))
        .collect();
    assert_eq!(told, ["store_down", "store_up"], "{log:#?}");
    let down = log.iter().find_map(|line| line["down_ms"].as_u64()).unwrap();
    assert!((7_000..60_000).contains(&down), "{down}");
    // The lease ran out meanwhile: that is the only other line.
    assert!(
        loud.iter()
            .all(|line| line["event"] == "store_down" || line["event"] == "lease_lost")
            && loud.len() <= 2,
        "{loud:#?}"
    );
    scene.stop(relay);
}

#[test]
fn an_outage_of_rabbitmq_is_two_lines_and_ends_soon() {
    let runtime = Runtime::new().unwrap();
    let mut rabbit = runtime.block_on(RabbitMq::start());
    let sink = format!(
        "type = \"rabbitmq\"\nurl = {:?}\nexchange = \"orders\"\ndeclare = \"active\"\nqueue = \"orders\"\nqueue_type = \"classic\"",
        rabbit.url()
    );
    let scene = Scene::new(runtime, &sink);
    let relay = scene.relay();
    scene.sandbox.emit(&["order.placed", "--payload", "{}"]);
    scene.wait_for_less(1);
    let before = scene.log(0).len();
    rabbit.kill();
    for n in 0..20 {
        scene
            .sandbox
            .emit(&["order.placed", "--key", &format!("key-{}", n % 3), "--payload", "{}"]);
    }
    std::thread::sleep(Duration::from_secs(5));
    scene.runtime.block_on(rabbit.restart());
    let begun = Instant::now();
    scene.wait_for_less(20);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    scene.wait_for_less(1);
    let log = scene.log(before);
    assert_eq!(events(&log), ["sink_down", "sink_up"], "{log:#?}");
    assert_eq!(log.len(), 2, "{log:#?}");
    scene.stop(relay);
}
