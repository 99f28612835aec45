//! The program with its Kafka sink built in, as it is shipped.

use std::time::Duration;

use sendoff_testkit::servers::Kafka;

use crate::sandbox::Sandbox;

/// A sandbox with a sink for this broker, and its topic `events`.
fn sandbox(kafka: &Kafka) -> Sandbox {
    kafka.create_topic("events");
    let sandbox = Sandbox::sqlite();
    sandbox.configure(&format!(
        "[[sink]]\nname = \"events\"\ntype = \"kafka\"\nbrokers = [\"{}\"]\ntopic = \"{{topic}}\"\n\
         [[route]]\nmatch = \"*\"\nto = [\"events\"]\n",
        kafka.address()
    ));
    sandbox
}

/// How many records the broker has stored.
fn records(kafka: &Kafka) -> u32 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = rusqlite::Connection::open_with_flags(kafka.database(), flags).unwrap();
    database.busy_timeout(Duration::from_secs(30)).unwrap();
    database
        .query_row("SELECT count(*) FROM record", [], |row| row.get(0))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_probes_reach_kafka() {
    let kafka = Kafka::start().await;
    let sandbox = sandbox(&kafka).migrated();
    sandbox.ok(["config", "check"]);
    let tried = sandbox.json(&["sink", "test", "events", "--topic", "events"]);
    assert_eq!(
        (tried["outcome"].as_str(), tried["type"].as_str()),
        (Some("delivered"), Some("kafka")),
        "{tried}"
    );
    assert_eq!(records(&kafka), 1);
    let ran = sandbox.run(["sink", "test", "events", "--topic", "nowhere", "--json"]);
    assert_eq!(
        (ran.code, ran.json()["outcome"].as_str()),
        (1, Some("permanent")),
        "{ran:?}"
    );

    sandbox.emit(&["events", "--payload", "{\"order\":42}"]);
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!(
        (report["delivered"].as_i64(), records(&kafka)),
        (Some(1), 2),
        "{report}"
    );
}

#[test]
fn passwords_of_kafka_are_not_shown() {
    let sandbox = Sandbox::sqlite();
    sandbox.configure(
        "[[sink]]\nname = \"events\"\ntype = \"kafka\"\nbrokers = [\"a:9092\"]\nuser = \"me\"\npassword = \"hunter2\"\n",
    );
    let shown = sandbox.ok(["config", "show"]).out;
    assert!(shown.contains("a:9092") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn settings_that_kafka_cannot_use_are_refused() {
    let sandbox = Sandbox::sqlite();
    let sink = "[[sink]]\nname = \"events\"\ntype = \"kafka\"\n";
    for (lines, word) in [
        ("brokers = []\n", "brokers"),
        ("brokers = [\"a\"]\ntopik = \"x\"\n", "topik"),
    ] {
        sandbox.configure(&format!("{sink}{lines}"));
        sandbox.run(["config", "check"]).fails_with_reason(2, &[word]);
    }
}
