//! `items`, and what `stats` and `reap` say about items, on every database.

use std::sync::Arc;
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::store::{Item, WorkStore};
use sendoff::{Message, Uuid};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
use serde_json::{Value, json};

use crate::on_every_database;
use crate::sandbox::{Place, Running, Sandbox, block_on, wait_until};

on_every_database! {
    failed_items_are_listed_shown_retried_and_discarded
    items_of_every_state_are_listed
    items_are_counted_and_reaped
    a_relay_reaps_items_on_its_own
}

const LEASE: Duration = Duration::from_secs(600);
const SHORT_LEASE: Duration = Duration::from_millis(50);

fn work(place: &Place) -> Arc<dyn WorkStore> {
    let names = |schema: &str| Names::new(Some(schema), Names::PREFIX).unwrap();
    match place {
        Place::Sqlite(path) => Arc::new(SqliteStore::open(SqliteConfig::new(path)).unwrap()),
        Place::Postgres { url, schema } => {
            Arc::new(PostgresStore::new(PostgresConfig::new(url).names(names(schema))).unwrap())
        }
        Place::Mysql { url, schema } => Arc::new(MysqlStore::new(MysqlConfig::new(url).names(names(schema))).unwrap()),
    }
}

/// Emits items of these topics, and has a worker claim them all.
fn claimed(sandbox: &Sandbox, topics: &[&str], lease: Duration) -> Vec<Item> {
    let work = work(&sandbox.place);
    let message = |topic: &&str| Message::json(*topic, &json!({"for": topic})).unwrap().key("k");
    let items: Vec<Message> = topics.iter().map(message).collect();
    block_on(async {
        let mut tx = work.begin_items().await.unwrap();
        tx.emit(&items).await.unwrap();
        tx.commit().await.unwrap();
        work.claim_batch("w", items.len(), lease).await.unwrap()
    })
}

fn fail(sandbox: &Sandbox, items: &[Item]) {
    let work = work(&sandbox.place);
    block_on(async {
        for item in items {
            let error = format!("no paper for {}", item.topic);
            work.mark_failed("w", item.claim, &error).await.unwrap();
        }
    });
}

fn ids(list: &Value) -> Vec<Uuid> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

fn failed_items_are_listed_shown_retried_and_discarded(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let topics = ["invoice.print", "invoice.send", "mail.send", "mail.forget"];
    let items = claimed(&sandbox, &topics, LEASE);
    fail(&sandbox, &items);
    let expected: Vec<Uuid> = items.iter().map(|item| item.id).collect();
    let all = sandbox.json(&["items", "ls"]);
    assert_eq!((ids(&all), &all["more"]), (expected.clone(), &json!(false)));
    let page = sandbox.json(&["items", "ls", "--limit", "1", "--offset", "1"]);
    assert_eq!((ids(&page), &page["more"]), (vec![expected[1]], &json!(true)));
    assert_eq!(
        ids(&sandbox.json(&["items", "ls", "--topic", "invoice.*"])),
        expected[..2]
    );
    let by_error = sandbox.json(&["items", "ls", "--filter", "error=for mail"]);
    assert_eq!(ids(&by_error), expected[2..]);
    assert!(ids(&sandbox.json(&["items", "ls", "--older-than", "1h"])).is_empty());
    sandbox.run(["items", "ls", "--filter", "leg=out"]).fails(2, &["sink"]);
    let table = sandbox.ok(["items", "ls"]).out;
    assert!(table.contains("no paper for mail.send"), "{table}");

    let id = expected[0].to_string();
    let shown = sandbox.json(&["items", "show", &id]);
    assert_eq!(
        (
            &shown["state"],
            &shown["topic"],
            &shown["attempts"],
            &shown["last_error"]
        ),
        (
            &json!("failed"),
            &json!("invoice.print"),
            &json!(1),
            &json!("no paper for invoice.print")
        )
    );
    assert_eq!(shown["payload"], "{\"for\":\"invoice.print\"}");
    assert!(sandbox.ok(["items", "show", &id]).out.contains("invoice.print"));
    sandbox
        .run(["items", "show", &Uuid::new_v4().to_string()])
        .fails(5, &["no item"]);

    sandbox.run(["items", "retry", "--yes"]).fails(2, &["--all"]);
    assert_eq!(
        sandbox.json(&["items", "retry", "--all", "--dry-run"])["would_retry"],
        4
    );
    assert_eq!(sandbox.json(&["items", "retry", &id, "--yes"])["retried"], 1);
    sandbox.run(["items", "retry", &id, "--yes"]).fails(5, &["failed item"]);
    assert_eq!(
        sandbox.json(&["items", "discard", "--topic", "mail.*", "--yes"])["discarded"],
        2
    );
    assert_eq!(ids(&sandbox.json(&["items", "ls", "--state", "failed"])), [expected[1]]);
    assert_eq!(
        sandbox.json(&["stats"])["items"],
        json!({"pending": 1, "running": 0, "retry": 0, "completed": 0, "failed": 1})
    );
    let audit = sandbox.json(&["audit"]);
    let noted: Vec<(&str, u64, &Value)> = audit["audit"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["action"].as_str().unwrap(),
                row["affected"].as_u64().unwrap(),
                &row["filter"],
            )
        })
        .collect();
    // What retried nothing found no items to retry: there was nothing to write down.
    let (retried, discarded) = (json!({"ids": [id]}), json!({"topic": "mail.*"}));
    assert_eq!(noted, [("items discard", 2, &discarded), ("items retry", 1, &retried)]);
}

fn items_of_every_state_are_listed(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let items = claimed(&sandbox, &["failed", "retry", "running"], LEASE);
    fail(&sandbox, &items[..1]);
    let work = work(&sandbox.place);
    block_on(async {
        work.mark_retry("w", items[1].claim, LEASE, "jam").await.unwrap();
        let mut tx = work.begin_items().await.unwrap();
        tx.emit(&[Message::json("pending", &1).unwrap()]).await.unwrap();
        tx.commit().await.unwrap();
    });
    let states = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        states(&sandbox.json(&["items", "ls"])),
        ["failed", "retry", "running", "pending"]
    );
    for state in ["pending", "running", "retry", "failed"] {
        let listed = sandbox.json(&["items", "ls", "--state", state]);
        assert_eq!(states(&listed), [state]);
        assert_eq!(listed["items"][0]["topic"], state);
        let is_running = state == "running";
        assert_eq!(listed["items"][0]["lease_owner"] == "w", is_running);
        assert_eq!(listed["items"][0]["lease_until"].is_string(), is_running);
        assert_eq!(
            listed["items"][0]["due_at"].is_string(),
            matches!(state, "pending" | "retry")
        );
    }
    assert!(states(&sandbox.json(&["items", "ls", "--state", "completed"])).is_empty());
    let refused = sandbox.run(["items", "ls", "--state", "dead"]);
    assert!(
        refused.code == 2 && refused.err.contains("completed or failed"),
        "{refused:?}"
    );
    let shown = sandbox.ok(["items", "show", &items[2].id.to_string()]).out;
    assert!(shown.contains("worker") && shown.contains("lease ends"), "{shown}");
    let table = sandbox.ok(["items", "ls", "--state", "running"]).out;
    assert!(table.contains("running") && table.contains('w'), "{table}");
}

fn a_relay_reaps_items_on_its_own(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure_file_sink("[relay]\nreap_after = \"1s\"\n");
    claimed(&sandbox, &["invoice.print", "mail.send"], SHORT_LEASE);
    let _relay = Running::start(&mut sandbox.command(["relay"]));
    wait_until("both items are due again", Duration::from_secs(30), || {
        sandbox.json(&["stats"])["items"]["retry"] == 2
    });
}

fn items_are_counted_and_reaped(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    assert_eq!(sandbox.json(&["stats"]).get("items"), None, "there are none");
    // First, or it would get one of the others whose lease has run out.
    let held = claimed(&sandbox, &["held"], LEASE);
    let items = claimed(&sandbox, &["invoice.print", "mail.send"], SHORT_LEASE);
    assert_eq!(sandbox.json(&["stats"])["items"]["running"], 3);
    let fresh = sandbox.json(&["reap", "--stale-after", "1h"]);
    assert_eq!(fresh["items_reaped"], 0, "no lease ran out that long ago");
    let mut reaped = 0;
    wait_until("their leases have run out", Duration::from_secs(30), || {
        reaped += sandbox.json(&["reap", "--stale-after", "1ms"])["items_reaped"]
            .as_u64()
            .unwrap();
        reaped > 0
    });
    assert_eq!(reaped, 2);
    let audit = sandbox.json(&["audit"]);
    let last = &audit["audit"][0];
    assert_eq!(
        (&last["action"], &last["affected"], &last["filter"]),
        (&json!("reap"), &json!(2), &json!({"stale_after_seconds": 0.001}))
    );
    let counts = sandbox.json(&["stats"])["items"].clone();
    assert_eq!((&counts["running"], &counts["retry"]), (&json!(1), &json!(2)));
    // Whoever had them finds them gone; what is held is not touched.
    let work = work(&sandbox.place);
    let both = [items[0].claim, held[0].claim];
    let lost = block_on(async { work.mark_success("w", &both).await.unwrap() });
    assert_eq!(lost, [items[0].claim]);
}
