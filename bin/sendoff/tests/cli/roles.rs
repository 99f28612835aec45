//! The roles of PostgreSQL, each with the commands that it is for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, TestDatabase, wait_until};

/// Tables whose roles nobody else has: roles belong to the whole server.
struct Shop {
    sandbox: Sandbox,
    prefix: String,
}

impl Shop {
    fn new() -> Self {
        let sandbox = Sandbox::postgres();
        let TestDatabase::Postgres { schema, .. } = &sandbox.place else {
            panic!("it is on PostgreSQL")
        };
        let number: String = schema.chars().filter(char::is_ascii_digit).collect();
        let prefix = format!("r{}_", &number[number.len().saturating_sub(16)..]);
        // A sink that no message has a route to.
        sandbox.configure(&format!(
            "table_prefix = {prefix:?}\n[[sink]]\nname = \"out\"\ntype = \"stdout\"\n\
             [[route]]\nmatch = \"another\"\nto = [\"out\"]\n"
        ));
        sandbox.ok(["migrate"]);
        Self { sandbox, prefix }
    }

    /// Runs SQL on the tables, as their owner.
    fn sql(&self, sql: &str) {
        self.sandbox.sql(&sql.replace("outbox_", &self.prefix));
    }

    /// The URL of a new login with this role, after `migrate roles --apply`.
    fn login(&self, role: &str) -> String {
        let (prefix, login) = (&self.prefix, self.login_name(role));
        self.sandbox.run_script(&format!(
            "CREATE ROLE {login} LOGIN PASSWORD 'x'; GRANT {prefix}{role} TO {login}"
        ));
        let url = self.sandbox.place.url();
        let (_, host) = url.rsplit_once('@').unwrap();
        format!("postgres://{login}:x@{host}")
    }

    fn login_name(&self, role: &str) -> String {
        format!("{}login_{role}", self.prefix)
    }
}

#[test]
fn an_operator_works_with_nothing_but_the_role_and_is_known_by_the_login() {
    let shop = Shop::new();
    let sandbox = &shop.sandbox;
    let applied = sandbox.json(&["migrate", "roles", "--apply"]);
    assert_eq!(applied["applied"], true);
    assert!(
        sandbox
            .ok(["migrate", "roles", "--apply"])
            .out
            .contains("roles created")
    );
    let (relay, operator) = (shop.login("relay_role"), shop.login("operator"));
    let ids = [(); 2].map(|()| sandbox.emit(&["t", "--payload", "{}", "--key", "k"]));
    // Without a route they end as dead letters.
    sandbox.ok(["relay", "--once", "--database", &relay]);
    shop.sql("UPDATE outbox_dead SET blocks = true");
    let acts: [&[&str]; 11] = [
        &["pause", "sink", "out"],
        &["resume", "sink", "out"],
        &["keys", "release", "k"],
        &["dead", "retry", &ids[0]],
        &["dead", "discard", "--topic", "t"],
        &["retry", "--all"],
        &["retry", "--reset", "--key", "k"],
        &["reap", "--stale-after", "90s"],
        &[
            "cleanup",
            "--delivered",
            "1d",
            "--dead",
            "90d",
            "--dedup",
            "--inbox",
            "90d",
        ],
        &["dead", "ls"],
        &["stats"],
    ];
    for act in acts {
        sandbox.ok(act.iter().copied().chain(["--database", &operator]));
    }
    let audit = sandbox.json(&["audit", "--database", &operator]);
    let rows = audit["items"].as_array().unwrap();
    let noted: Vec<(&Value, &Value)> = rows
        .iter()
        .rev()
        .map(|row| (&row["action"], &row["affected"]))
        .collect();
    let expected = [
        ("pause", 1),
        ("resume", 1),
        ("keys release", 2),
        ("dead retry", 1),
        ("dead discard", 1),
        ("retry", 0),
        ("retry --reset", 1),
        ("reap", 0),
        ("cleanup", 0),
    ]
    .map(|(action, count)| (json!(action), json!(count)));
    assert_eq!(noted, expected.each_ref().map(|(action, count)| (action, count)));
    for row in rows {
        assert_eq!(row["login"], shop.login_name("operator"), "{row}");
        assert!(row["who"].as_str().is_some_and(|who| who.contains('@')), "{row}");
    }
    let told = sandbox.ok(["audit", "--limit", "1", "--database", &operator]).out;
    assert!(
        told.starts_with("at\tlogin\twho\t") && told.contains(&shop.login_name("operator")),
        "{told}"
    );

    let viewer = shop.login("viewer");
    sandbox.ok(["audit", "--database", &viewer]);
    sandbox
        .run(["pause", "sink", "out", "--database", &viewer])
        .fails_with_reason(6, &["permission denied"]);
}

#[test]
fn a_viewer_sees_the_figures_that_a_relay_writes_each_with_nothing_but_the_role() {
    let shop = Shop::new();
    let sandbox = &shop.sandbox;
    sandbox.ok(["migrate", "roles", "--apply"]);
    let relay = shop.login("relay_role");
    let _relay = crate::status::relay(sandbox, &["--database", &relay], "relay.log");
    for role in ["viewer", "operator"] {
        let login = shop.login(role);
        let see = || sandbox.run(["status", "--json", "--database", &login]);
        wait_until("there are figures", Duration::from_secs(30), || {
            let ran = see();
            assert!([0, 7, 8].contains(&ran.code), "{role}: {ran:?}");
            ran.json()["relays"][0]["rates"].is_object()
        });
        let view = see().json();
        assert_eq!(view["sinks"][0]["state"], "up", "{role}: {view:#}");
    }
}
