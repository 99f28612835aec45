//! Every kind of Celery call, emitted by Django, Rust and SQL, relayed, and run by workers of the oldest and the newest
//! Celery, over both brokers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod sandbox;
mod shop;
mod tasks;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use sandbox::{Running, Sandbox, wait_until};
use sendoff_testkit::servers::{RabbitMq, Redis};
use serde_json::Value;
use shop::{PATIENCE, Project};
use tasks::check::{Check, left};
use tasks::emit::Dispatcher;
use tasks::{Producer, Scenario, Then, When, table};

const OLD: &str = "SENDOFF_TEST_CELERY_OLD";
const NEW: &str = "SENDOFF_TEST_CELERY_NEW";

/// Longer than the tasks that expire have, which counts from their transaction however late the relay is.
const UNTIL_EXPIRED: Duration = Duration::from_millis(1600);

#[test]
fn the_newest_celery_runs_every_call_over_redis() {
    let redis = runtime().block_on(Redis::start());
    let project = Project::on_postgres(&redis.url(), &redis.url());
    runs_every_call(&project, NEW, false);
}

#[test]
fn the_newest_celery_runs_every_call_over_rabbitmq() {
    let redis = runtime().block_on(Redis::start());
    let project = Project::on_postgres(RabbitMq::shared().url(), &redis.url());
    runs_every_call(&project, NEW, false);
}

/// From SQLite, which the Python relay refuses.
#[test]
fn the_oldest_celery_runs_every_call_over_redis() {
    let redis = runtime().block_on(Redis::start());
    let project = Project::on_sqlite(&redis.url(), &redis.url());
    runs_every_call(&project, OLD, false);
}

#[test]
fn the_oldest_celery_runs_every_call_over_rabbitmq() {
    let redis = runtime().block_on(Redis::start());
    let project = Project::on_mysql(RabbitMq::shared().url(), &redis.url());
    runs_every_call(&project, OLD, false);
}

/// A separate RabbitMQ: the names of the queues for delayed tasks are always the same.
#[test]
fn the_newest_celery_runs_calls_from_quorum_queues() {
    let runtime = runtime();
    let (rabbitmq, redis) = runtime.block_on(async { (RabbitMq::start().await, Redis::start().await) });
    let project = Project::on_postgres(&rabbitmq.url(), &redis.url());
    runs_every_call(&project, NEW, true);
}

/// A runtime whose threads run a server's helpers.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

fn runs_every_call(project: &Project, celery: &str, quorum: bool) {
    // Both take seconds to load.
    let _worker = project.worker(celery, if quorum { &[("SHOP_QUORUM", "1")] } else { &[] });
    let mut django = project.enqueuer();
    let outbox = Sandbox::postgres();
    let sink = sink(project, quorum);
    outbox.configure(&format!(
        "[relay]\nidle_time = \"20ms\"\n{sink}[[route]]\nmatch = \"*\"\nto = [\"celery\"]\n"
    ));
    let outbox = outbox.migrated();
    std::fs::write(project.path("sendoff.toml"), sink).unwrap();
    django.wait();
    let mut dispatcher = Dispatcher {
        project,
        django,
        outbox: &outbox,
    };
    let table = table();
    // With quorum queues, the worker declares the queues for delayed tasks, so one task must run first.
    let is_early = |each: &Scenario| {
        if quorum {
            each.name == "plain"
        } else {
            each.when == When::Early
        }
    };
    let wanted = table.iter().filter(|each| each.on_quorum || !quorum);
    let (early, live): (Vec<&Scenario>, Vec<&Scenario>) = wanted.partition(|each| is_early(each));

    let mut emitted = dispatcher.emit(&early);
    if !quorum {
        std::thread::sleep(UNTIL_EXPIRED);
    }
    let (mut relay, mut celery_relay) = relays(project, &outbox);
    wait_until("all is with the broker", PATIENCE, || left(project, &outbox) == 0);
    project.open_the_gate();
    let mut check = Check {
        project,
        outbox: &outbox,
        journal: project.journal(),
    };
    // Once it runs one, it has declared its queues.
    check.wait_for("the first task", |lines| !lines.is_empty());
    emitted.extend(dispatcher.emit(&live));
    check.outcomes(&emitted);
    check.ends(&emitted);
    if !quorum {
        check.priorities();
    }
    check.results();
    relay.signal(Signal::TERM);
    celery_relay.signal(Signal::TERM);
    assert_eq!((relay.end(PATIENCE).code(), celery_relay.end()), (Some(0), Some(0)));
}

/// Settings that the application also has in Celery.
fn sink(project: &Project, quorum: bool) -> String {
    let (broker, queue) = (&project.broker, &project.queue);
    let kind = match quorum {
        true => {
            "default_queue_type = \"quorum\"\ndefault_exchange_type = \"topic\"\ncreate_missing_queue_type = \"quorum\"\n\
             create_missing_queue_exchange_type = \"topic\"\n"
        }
        false if broker.starts_with("amqp") => "queue_max_priority = 10\n",
        false => "",
    };
    let route = |task: &str, queue: &str| format!("[[sink.routes]]\ntask = {task:?}\nqueue = {queue:?}\n");
    // A full name takes precedence over a pattern, even over an earlier one.
    let routes = [
        route("shop.rout*", &format!("{queue}.nowhere")),
        route("shop.routed", &format!("{queue}.routed")),
        route("shop.glob.*", &format!("{queue}.glob")),
    ];
    format!(
        "[[sink]]\nname = \"celery\"\ntype = \"celery\"\nurl = {broker:?}\ndefault_queue = {queue:?}\n\
         declare = \"active\"\n{kind}{}",
        routes.concat()
    )
}

/// One for each of the two kinds of tables.
fn relays(project: &Project, outbox: &Sandbox) -> (Running, shop::Process) {
    let log = std::fs::File::create(outbox.path("relay.log")).unwrap();
    let mut command = outbox.command(["relay"]);
    (
        Running::start(command.stdout(Stdio::null()).stderr(log)),
        project.relay(&["--idle-time", "0.1", "--max-retries", "1"]),
    )
}

#[test]
fn every_captured_call_is_tried_and_what_is_left_out_has_a_reason() {
    let table = table();
    let names: BTreeSet<&str> = table.iter().map(|scenario| scenario.name).collect();
    assert_eq!(names.len(), table.len(), "two have the same name");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sinks/celery/tests/fixtures");
    let folders = ["native", "outbox"].map(|folder| std::fs::read_dir(fixtures.join(folder)).unwrap());
    let captured: BTreeSet<String> = folders
        .into_iter()
        .flatten()
        .map(|file| {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let capture: Value = serde_json::from_str(&text).unwrap();
            capture["vector"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(captured.len(), 49);
    let missing: Vec<&String> = captured.iter().filter(|name| !names.contains(name.as_str())).collect();
    assert_eq!(missing, Vec::<&String>::new());

    for (scenario, producer) in table
        .iter()
        .flat_map(|each| Producer::ALL.map(|producer| (each, producer)))
    {
        for database in ["postgres:", "mysql:", "sqlite:"] {
            let (then, reason) = scenario.outcome(producer, database);
            let unsaid = matches!(then, Then::Unsaid);
            assert!(
                unsaid && !reason.is_empty() || !unsaid && scenario.is_said_by(producer),
                "{} by {producer:?} on {database} is neither said nor left out",
                scenario.name
            );
        }
    }
}
