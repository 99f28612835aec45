//! Whole configurations, and the errors for bad ones.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use sendoff::ErrorKind;
use sendoff_relay::{OnFailure, RetryPolicy, Settings, SinkSettings};
use tempfile::{TempDir, tempdir};

use super::*;

fn file(folder: &TempDir, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn load_with(text: &str, env: &[(&str, &str)], flags: &[Override]) -> sendoff::Result<Config> {
    let folder = tempdir().unwrap();
    let path = file(&folder, "sendoff.toml", text);
    let env = env
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Config::load(Some(&path), env, flags)
}

fn load(text: &str) -> Config {
    load_with(text, &[], &[]).unwrap()
}

/// The error for a bad configuration, from the file's name on.
fn refused_with(text: &str, env: &[(&str, &str)], flags: &[Override]) -> String {
    let error = load_with(text, env, flags).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    let said = error.to_string();
    said.find("sendoff.toml")
        .map_or(said.clone(), |at| said[at..].to_owned())
}

fn refused(text: &str) -> String {
    refused_with(text, &[], &[])
}

/// The example, with the settings behind `comment` uncommented.
fn example_without(comment: &str) -> String {
    let is_setting = |line: &str| line.starts_with('[') || line.contains(" = ") && !line.starts_with(' ');
    Config::example()
        .lines()
        .map(|line| {
            line.strip_prefix(comment)
                .filter(|rest| is_setting(rest))
                .unwrap_or(line)
        })
        .fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn the_example_is_the_defaults_and_a_place_to_start() {
    let config = load(Config::example());
    let defaults = Config {
        database: config.database.clone(),
        sinks: config.sinks.clone(),
        routes: config.routes.clone(),
        ..Config::default()
    };
    assert_eq!(config, defaults);
    assert_eq!(
        config.database.url().unwrap(),
        &DatabaseUrl::Sqlite("sendoff.db".into())
    );
    assert_eq!(config.relay.settings(), Settings::default());
    assert_eq!(config.retry.policy(), RetryPolicy::default());
    assert_eq!(config.sinks[0].settings(), SinkSettings::default());
    assert_eq!(
        config.sinks[0].own(),
        Some(&sendoff_sink_stdout::StdoutConfig::default())
    );
    config.check_delivers().unwrap();
}

#[test]
fn every_default_in_the_example_is_the_real_one() {
    let with_defaults = example_without("# ");
    assert_eq!(
        with_defaults.lines().filter(|line| line.contains("lease = ")).count(),
        1
    );
    assert!(with_defaults.contains("\nlease = "));
    assert_eq!(load(&with_defaults), load(Config::example()));
    // Every setting with a default is in the example.
    let shown = load(&with_defaults).to_toml().unwrap();
    for line in shown.lines().filter(|line| line.contains(" = ")) {
        let key = line.split(" = ").next().unwrap();
        assert!(
            with_defaults.contains(&format!("\n{key} = ")),
            "{key} is not in the example"
        );
    }
}

#[test]
fn every_suggestion_in_the_example_can_be_used() {
    let text = example_without("#     ")
        .replace("url_env = \"DATABASE_URL\"\n", "")
        .replace("url = \"sqlite", "# ");
    let folder = tempdir().unwrap();
    let secret = file(&folder, "url", "postgres://shop:hunter2@db/shop\n");
    let config = load(&text.replace("/run/secrets/database-url", secret.to_str().unwrap()));
    assert_eq!(config.database.names().unwrap().schema(), Some("shop"));
    assert_eq!(
        (config.topics.len(), config.sinks.len(), config.routes.len()),
        (1, 2, 2)
    );
    let policy = config.topics[0].policy(&config.retry);
    assert_eq!(
        (policy.on_failure, policy.retry.attempts, policy.retry.base),
        (OnFailure::Park, 20, Duration::from_secs(10))
    );
    assert_eq!(policy.retry.max, RetryPolicy::default().max);
}

#[test]
fn nothing_at_all_is_the_defaults() {
    assert_eq!(load(""), Config::default());
    let error = load("").database.url().unwrap_err();
    assert!(error.to_string().contains("SENDOFF_DATABASE__URL"), "{error}");
    let error = load("").check_delivers().unwrap_err();
    assert!(error.to_string().contains("no sink"), "{error}");
    let error = load("[[sink]]\nname = \"a\"\ntype = \"stdout\"")
        .check_delivers()
        .unwrap_err();
    assert!(
        error.to_string().contains("no route") && error.to_string().contains("[\"a\"]"),
        "{error}"
    );
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let text = "[relay]\nbatch = 1\nmax_in_flight = 1000\nlease = \"20s\"\n\
                [database]\nlisten = true\nurl = \"sqlite:file.db\"";
    let env = [
        ("SENDOFF_RELAY__BATCH", "2"),
        ("SENDOFF_RELAY__MAX_IN_FLIGHT", "2000"),
        ("SENDOFF_RELAY__LEASE", ""),
        ("SENDOFF_RETRY__JITTER", "0.5"),
        ("SENDOFF_DATABASE__LISTEN", "false"),
        ("SENDOFF_DATABASE__SCHEMA", "123"),
        ("SENDOFF_LOG__FORMAT", "json"),
        ("SENDOFF_CONFIG", "ignored"),
        ("SENDOFF_PORT_80_TCP", "ignored"),
        ("OTHER__THING", "ignored"),
    ];
    let flags = [
        Override::flag("--batch", "relay.batch", "3"),
        Override::flag("--database", "database.url", "postgres://flag/x"),
    ];
    // A schema of digits is rejected for its name, so it was read as text.
    let said = refused_with(text, &env, &flags);
    assert!(
        said.starts_with("the variable SENDOFF_DATABASE__SCHEMA: the schema \"123\" is invalid"),
        "{said}"
    );
    let config = load_with(
        text,
        &env.map(|(name, value)| (name, if value == "123" { "shop" } else { value })),
        &flags,
    );
    let config = config.unwrap();
    let settings = config.relay.settings();
    assert_eq!(
        (settings.batch, settings.max_in_flight, settings.lease),
        (3, 2000, Duration::from_secs(20))
    );
    assert!((config.retry.policy().jitter - 0.5).abs() < f64::EPSILON);
    assert!(!config.database.listen);
    assert_eq!(config.log.format, crate::log::Format::Json);
    assert_eq!(config.database.url().unwrap().to_string(), "postgres://flag/x");
}

#[test]
fn sinks_take_variables_by_their_names() {
    let text =
        "[[sink]]\nname = \"audit-log\"\ntype = \"file\"\npath = \"a\"\n[[sink]]\nname = \"out\"\ntype = \"stdout\"";
    let env = [
        ("SENDOFF_SINK__AUDIT_LOG__PATH", "b"),
        ("SENDOFF_SINK__OUT__BATCH", "7"),
    ];
    let config = load_with(text, &env, &[]).unwrap();
    assert_eq!(config.sinks[0].own(), Some(&sendoff_sink_file::FileConfig::new("b")));
    assert_eq!(config.sinks[1].settings().batch, 7);
    for (variable, word) in [
        ("SENDOFF_SINK__NONE__PATH", "no sink has that name"),
        ("SENDOFF_SINK__OUT__PATH", "there is no setting \"path\" in [[sink]]"),
        ("SENDOFF_ROUTE__A__TO", "lists can only be set in the file"),
        ("SENDOFF_RELAY__A__B", "not the path of a setting"),
    ] {
        let said = refused_with(text, &[(variable, "x")], &[]);
        assert!(
            said.starts_with(&format!("the variable {variable}")) && said.contains(word),
            "{said}"
        );
    }
}

#[test]
fn an_unknown_setting_is_told_with_its_line_and_the_one_that_was_meant() {
    for (text, what, next) in [
        (
            "\n[relay]\nlesae = \"1s\"",
            "line 3: there is no setting \"lesae\" in [relay]",
            "did you mean lease?",
        ),
        (
            "[realy]",
            "line 1: there is no setting \"realy\" in the configuration",
            "did you mean relay?",
        ),
        (
            "[[sinks]]",
            "line 1: there is no setting \"sinks\" in the configuration",
            "did you mean sink?",
        ),
        (
            "[[sink]]\nname = \"a\"\ntype = \"file\"\npth = \"x\"",
            "line 4: there is no setting \"pth\" in [[sink]]",
            "did you mean path? known settings: path, fsync, rotate_bytes, keep, name, type",
        ),
        (
            "[[topic]]\nmatch = \"*\"\nretry.attemps = 3",
            "line 3: there is no setting \"attemps\" in [[topic]]",
            "did you mean attempts?",
        ),
        (
            "[log]\nhunter = 1",
            "line 2: there is no setting \"hunter\" in [log]",
            "(known settings: format, level)",
        ),
    ] {
        let said = refused(text);
        assert!(said.starts_with(&format!("sendoff.toml {what}")), "{said}");
        assert!(said.contains(next), "{said}");
    }
    let said = refused_with("", &[("SENDOFF_DATABSE__URL", "x")], &[]);
    assert!(
        said.starts_with("the variable SENDOFF_DATABSE__URL: there is no setting \"databse\""),
        "{said}"
    );
    assert!(said.contains("did you mean database?"), "{said}");
}

#[test]
fn a_bad_value_is_told_with_its_line_and_what_is_allowed() {
    let sink = |line: &str| format!("[[sink]]\nname = \"a\"\ntype = \"file\"\npath = \"x\"\n{line}");
    for (text, what, next) in [
        (
            "[relay]\nlease = \"10x\"",
            "line 2: lease in [relay] cannot be string \"10x\"",
            "250ms, 10s, 5m, 1h or 7d",
        ),
        (
            "[relay]\nlease = 10",
            "line 2: lease in [relay] cannot be integer `10`",
            "250ms, 10s, 5m, 1h or 7d",
        ),
        (
            "[relay]\nbatch = \"5\"",
            "line 2: batch in [relay] cannot be string \"5\"",
            "a whole number",
        ),
        (
            "[relay]\nbatch = -5",
            "line 2: batch in [relay] cannot be integer `-5`",
            "a whole number",
        ),
        (
            "[relay]\nbatch = 0",
            "line 2: batch in [relay] cannot be 0",
            "use a value above 0",
        ),
        (
            "[relay]\nidle_time = \"0s\"",
            "line 2: idle_time in [relay] cannot be 0",
            "use a value above 0",
        ),
        (
            "[relay]\ncrash_limit = 1",
            "line 2: crash_limit in [relay] is below 2",
            "use 2 or more",
        ),
        (
            "relay = 5",
            "line 1: [relay] cannot be integer `5`",
            "settings below it",
        ),
        (
            "[retry]\njitter = 2",
            "line 2: jitter of the retries is out of range",
            "use 0 to 1",
        ),
        (
            "[retry]\nmultiplier = nan",
            "line 2: multiplier of the retries is out of range",
            "use 1 to 1000",
        ),
        (
            "[retry]\nbase = \"2h\"",
            "line 1: max of the retries is out of range",
            "use at least base",
        ),
        (
            "[database]\nretention = \"0d\"",
            "line 2: retention in [database] cannot be string \"0d\"",
            "or off",
        ),
        (
            "[database]\njob_max_attempts = 0",
            "line 2: job_max_attempts is 0",
            "use 1 or more",
        ),
        (
            "[database]\ndedup_window = \"5ms\"",
            "line 2: dedup_window is too short",
            "1s or more",
        ),
        (
            "[database]\nlisten = \"no\"",
            "line 2: listen in [database] cannot be string \"no\"",
            "true or false",
        ),
        (
            "[database]\ntable_prefix = \"A\"",
            "line 2: the table prefix \"A\" is invalid",
            "lower-case",
        ),
        (
            "[log]\nlevel = \"loud\"",
            "line 2: level in [log] cannot be string \"loud\"",
            "info, debug, trace",
        ),
        (
            "[[topic]]\nmatch = \"*\"\non_failure = \"x\"",
            "line 3: on_failure in [[topic]] cannot be string \"x\"",
            "block, skip or park",
        ),
        (
            "[[topic]]\nmatch = \"a[\"",
            "line 2: match in [[topic]] cannot be used",
            "write a pattern like order.*",
        ),
        (
            "[[topic]]\non_failure = \"skip\"",
            "line 1: [[topic]] has no match",
            "add match",
        ),
        (
            "[topic]\nmatch = \"*\"",
            "line 1: [topic] cannot be a single section",
            "write [[topic]] with two brackets",
        ),
        (
            "[sink]\nname = \"a\"",
            "line 1: [sink] cannot be a single section",
            "[[sink]] with two brackets",
        ),
        ("[[sink]]\nname = \"a\"", "line 1: [[sink]] has no type", "add type"),
        (
            "[[sink]]\ntype = \"stdout\"",
            "line 1: [[sink]] has no name",
            "add name",
        ),
        (
            "[[sink]]\nname = \"a\"\ntype = \"x\"",
            "line 3: type in [[sink]] cannot be \"x\"",
            "use stdout or file",
        ),
        (
            "[[sink]]\nname = \"a\"\ntype = \"file\"",
            "line 1: [[sink]] has no path",
            "add path",
        ),
        (&sink("keep = 0"), "line 1: keep of the file sink is 0", "1 or more"),
        (
            &sink("concurrency = 0"),
            "line 5: concurrency of the sink \"a\" cannot be 0",
            "use a value above 0",
        ),
        (
            "[[route]]\nmatch = \"*\"\nto = \"a\"",
            "line 3: to in [[route]] cannot be string \"a\"",
            "a list in brackets",
        ),
        ("[relay\n", "line 1 is not valid TOML", "correct the line"),
        ("a = \"hunter2", "line 1 is not valid TOML", "correct the line"),
    ] {
        let said = refused(text);
        assert!(said.starts_with(&format!("sendoff.toml {what}")), "{said}");
        assert!(said.contains(next), "{said}");
    }
    let said = refused_with("", &[("SENDOFF_RELAY__BATCH", "many")], &[]);
    assert!(
        said.starts_with("the variable SENDOFF_RELAY__BATCH: batch in [relay] cannot be string \"many\""),
        "{said}"
    );
    let said = refused_with("", &[], &[Override::flag("--lease", "relay.lease", "0s")]);
    assert!(
        said.starts_with("the flag --lease: lease in [relay] cannot be 0"),
        "{said}"
    );
}

#[test]
fn parts_that_do_not_fit_together_are_told_with_their_line() {
    let sinks = "[[sink]]\nname = \"audit\"\ntype = \"stdout\"\n";
    for (rest, what, next) in [
        (
            "[[route]]\nmatch = \"*\"\nto = [\"adit\"]",
            "line 6: the route of \"*\" leads to \"adit\"",
            "did you mean \"audit\"?",
        ),
        (
            "[[route]]\nmatch = \"*\"\nto = [\"rabbit\"]",
            "line 6: the route of \"*\" leads to \"rabbit\"",
            "use audit",
        ),
        (
            "[[route]]\nmatch = \"*\"\nto = []",
            "line 6: the route of \"*\" leads nowhere",
            "name at least one sink",
        ),
        (
            "[[route]]\nmatch = \"*\"\nto = [\n\"audit\",\n\"audit\"]",
            "line 8: the route of \"*\" leads to \"audit\" twice",
            "remove one of the two",
        ),
        (
            "[[route]]\nmatch = \"*\"\nto = [\"audit\"]\n[[route]]\nmatch = \"*\"\nto = [\"audit\"]",
            "line 8: a second [[route]] matches \"*\"",
            "merge the two",
        ),
        (
            "[[topic]]\nmatch = \"*\"\n[[topic]]\nmatch = \"*\"",
            "line 7: a second [[topic]] matches \"*\"",
            "merge the two",
        ),
        (
            "[[topic]]\nmatch = \"*\"\nretry.attempts = 0",
            "line 6: attempts of the retries is out of range",
            "1 or more",
        ),
        (
            "[[sink]]\nname = \"audit\"\ntype = \"stdout\"",
            "line 5: two sinks have the names \"audit\"",
            "its own name",
        ),
        (
            "[[sink]]\nname = \"The one\"\ntype = \"stdout\"",
            "line 5: a sink cannot have the name",
            "lower-case letters",
        ),
    ] {
        let said = refused(&format!("{sinks}{rest}"));
        assert!(said.starts_with(&format!("sendoff.toml {what}")), "{said}");
        assert!(said.contains(next), "{said}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_told() {
    let missing = std::path::Path::new("no/such/sendoff.toml");
    let error = Config::load(Some(missing), [], &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("no/such/sendoff.toml") && error.to_string().contains("sendoff init"),
        "{error}"
    );
    let folder = tempdir().unwrap();
    assert!(Config::load(Some(folder.path()), [], &[]).is_err());
    let path = folder.path().join("binary.toml");
    fs::write(&path, b"a = \"\xff\"").unwrap();
    let error = Config::load(Some(&path), [], &[]).unwrap_err();
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

#[test]
fn the_database_can_be_named_elsewhere_and_only_once() {
    let folder = tempdir().unwrap();
    let secret = file(&folder, "url", "postgres://shop:hunter2@db/shop\n");
    let by_file = format!("[database]\nurl_file = {:?}", secret.to_str().unwrap());
    let exposed = DatabaseUrl::Postgres("postgres://shop:hunter2@db/shop".into());
    assert_eq!(load(&by_file).database.url().unwrap(), &exposed);

    let by_env = "[database]\nurl_env = \"SHOP_DB\"";
    let env = [("SHOP_DB", "postgres://shop:hunter2@db/shop")];
    assert_eq!(load_with(by_env, &env, &[]).unwrap().database.url().unwrap(), &exposed);

    let over = [("SENDOFF_DATABASE__URL", "sqlite:a.db")];
    for lower in [by_file.as_str(), by_env] {
        let config = load_with(lower, &over, &[]).unwrap();
        assert_eq!(config.database.url().unwrap(), &DatabaseUrl::Sqlite("a.db".into()));
    }

    for (text, word) in [
        (by_env, "line 2: the variable SHOP_DB is not set"),
        ("[database]\nurl_file = \"no/such\"", "line 2: cannot read no/such"),
        (
            "[database]\nurl = \"sqlite:a\"\nurl_env = \"X\"",
            "line 2: the database is set more than once",
        ),
        (
            "[database]\nurl = \"oracle://a:hunter2@b/c\"",
            "line 2: url in [database] cannot be used: oracle:// is not",
        ),
        (
            "[database]\nurl = [\"hunter2\"]",
            "line 2: url in [database] cannot be used",
        ),
        (
            "[database]\nurl = \"sqlite:a\"\nschema = \"b\"",
            "line 3: schema is not allowed with SQLite",
        ),
    ] {
        let said = refused(text);
        assert!(said.starts_with(&format!("sendoff.toml {word}")), "{said}");
    }
    let said = refused_with("", &[("SENDOFF_DATABASE__URL", "hunter2")], &[]);
    assert!(
        said.starts_with("the variable SENDOFF_DATABASE__URL: url in [database] cannot be used"),
        "{said}"
    );
}

#[test]
fn what_is_shown_has_no_password_and_can_be_read_again() {
    let text = example_without("#     ")
        .replace("url_env = \"DATABASE_URL\"\n", "")
        .replace("url_file", "# ");
    let text = text.replace("sqlite:sendoff.db", "postgres://shop:hunter2@db/shop");
    let config = load(&text);
    let shown = config.to_toml().unwrap();
    assert!(
        !shown.contains("hunter2") && shown.contains("postgres://shop:***@db/shop"),
        "{shown}"
    );
    assert!(!format!("{config:?}").contains("hunter2"));
    assert!(!serde_json::to_string(&config).unwrap().contains("hunter2"));
    let again = load(&shown);
    assert_eq!(
        (&again.relay, &again.retry, &again.log),
        (&config.relay, &config.retry, &config.log)
    );
    assert_eq!(
        (&again.sinks, &again.routes, &again.topics),
        (&config.sinks, &config.routes, &config.topics)
    );

    let by_env = load_with("[database]\nurl_env = \"X\"", &[("X", "postgres://a:hunter2@b/c")], &[]).unwrap();
    let shown = by_env.to_toml().unwrap();
    assert!(
        shown.contains("url_env = \"X\"") && !shown.contains("postgres"),
        "{shown}"
    );
}
