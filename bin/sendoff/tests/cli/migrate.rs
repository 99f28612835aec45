//! `migrate`, on every database.

use crate::on_every_database;
use crate::sandbox::{Sandbox, TestDatabase};

on_every_database! {
    migrate_creates_the_tables_once
    a_dry_run_prints_the_sql_and_changes_nothing
    what_a_dry_run_prints_is_all_that_there_is_to_run
    status_ends_with_4_until_the_tables_are_there
    tables_that_are_too_new_are_refused_by_every_command
    missing_tables_are_refused_by_every_command
}

fn migrate_creates_the_tables_once(sandbox: Sandbox) {
    let first = sandbox.json(&["migrate"]);
    assert_eq!(first["applied"][0]["version"], 1);
    let version = first["version"].as_u64().unwrap();
    assert_eq!(
        sandbox.json(&["migrate"]),
        serde_json::json!({"applied": [], "version": version})
    );
    assert!(sandbox.ok(["migrate"]).out.starts_with("nothing to do"));
    assert_eq!(
        sandbox.json(&["ls"]),
        serde_json::json!({"items": [], "next": null, "scanned": 0})
    );
}

fn a_dry_run_prints_the_sql_and_changes_nothing(sandbox: Sandbox) {
    let ran = sandbox.ok(["migrate", "--dry-run"]);
    assert!(ran.out.contains("\n-- 0001 outbox\n"), "{ran:?}");
    assert!(
        ran.out.contains("CREATE TABLE") && ran.out.contains("outbox_message"),
        "{ran:?}"
    );
    sandbox.run(["ls"]).fails(4, &[]);
    if let TestDatabase::Sqlite(path) = &sandbox.place {
        assert!(!path.exists());
    }
    sandbox.ok(["migrate"]);
    let ran = sandbox.ok(["migrate", "--dry-run"]);
    assert_eq!(ran.out, "");
    assert!(ran.err.contains("nothing to do"), "{ran:?}");
    assert_eq!(
        sandbox.json(&["migrate", "--dry-run"]),
        serde_json::json!({"before": "", "would_apply": []})
    );
}

fn what_a_dry_run_prints_is_all_that_there_is_to_run(sandbox: Sandbox) {
    let script = sandbox.ok(["migrate", "--dry-run"]).out;
    sandbox.run_script(&script);
    let status = sandbox.json(&["migrate", "status"]);
    assert_eq!(status["state"], "current");
    let applied = sandbox.json(&["migrate"])["applied"].clone();
    assert_eq!(applied, serde_json::json!([]), "the ledger knows");
    let id = sandbox.emit(&["t", "--payload", "{}"]);
    assert_eq!(sandbox.json(&["show", &id])["status"], "pending");
    assert_eq!(sandbox.ok(["migrate", "--dry-run"]).out, "");
}

fn status_ends_with_4_until_the_tables_are_there(sandbox: Sandbox) {
    let ran = sandbox.run(["migrate", "status", "--json"]);
    assert_eq!(ran.code, 4);
    assert_eq!(ran.json()["state"], "missing");
    assert!(
        ran.err.starts_with("{\"error\":") && ran.err.contains("sendoff migrate"),
        "{ran:?}"
    );
    sandbox
        .run(["migrate", "status"])
        .fails_with_reason(4, &["sendoff migrate"]);
    sandbox.ok(["migrate"]);
    let status = sandbox.json(&["migrate", "status"]);
    assert_eq!(status["state"], "current");
    assert_eq!(status["applied"], status["needed"]);
    assert_eq!(status["migrations"][0]["applied"], true);
    assert!(sandbox.ok(["migrate", "status"]).out.contains("0001\toutbox\tapplied"));
}

fn tables_that_are_too_new_are_refused_by_every_command(sandbox: Sandbox) {
    sandbox.ok(["migrate"]);
    sandbox.configure_file_sink("");
    sandbox.sql("UPDATE outbox_migration SET version = version + 1000");
    for args in commands() {
        sandbox.run(args).fails_with_reason(4, &["too new", "newer version"]);
    }
    sandbox.run(["migrate"]).fails_with_reason(4, &["too new"]);
    sandbox.run(["migrate", "--dry-run"]).fails_with_reason(4, &["too new"]);
}

fn missing_tables_are_refused_by_every_command(sandbox: Sandbox) {
    sandbox.configure_file_sink("");
    for args in commands() {
        sandbox
            .run(args)
            .fails_with_reason(4, &["do not exist", "sendoff migrate"]);
    }
}

/// Every command that needs the tables.
fn commands() -> Vec<Vec<&'static str>> {
    let id = "00000000-0000-7000-8000-000000000000";
    vec![
        vec!["ls"],
        vec!["show", id],
        vec!["dead", "ls"],
        vec!["dead", "show", id],
        vec!["dead", "retry", id],
        vec!["retry", id],
        vec!["stats"],
        vec!["keys", "ls"],
        vec!["jobs", "ls"],
        vec!["reap"],
        vec!["cleanup", "--dedup"],
        vec!["emit", "t", "--payload", "{}"],
        vec!["relay"],
        vec!["relay", "--once"],
    ]
}

#[test]
fn an_unreachable_database_ends_with_3_and_without_its_password() {
    let sandbox = Sandbox::sqlite();
    sandbox.configure_file_sink("");
    // A port without a listener: it was just free.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("postgres://shop:hunter2@127.0.0.1:{port}/shop");
    let commands = commands().into_iter().filter(|args| *args != ["relay"]);
    for mut args in commands.chain([vec!["migrate"], vec!["migrate", "status"], vec!["migrate", "--dry-run"]]) {
        args.extend(["--database", &url, "-v"]);
        let ran = sandbox.run(&args);
        ran.fails_with_reason(3, &["refused", "caused by: "]);
        assert!(!ran.err.contains("hunter2"), "{ran:?}");
    }
}

#[test]
fn roles_are_printed_for_postgres_and_refused_for_sqlite() {
    let ran = Sandbox::postgres().ok(["migrate", "roles"]);
    assert!(ran.out.contains("CREATE ROLE") && ran.out.contains("GRANT"), "{ran:?}");
    Sandbox::sqlite()
        .run(["migrate", "roles"])
        .fails_with_reason(1, &["no role script"]);
}
