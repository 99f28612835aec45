//! Configurations that are refused, and how the error helps.

use super::*;

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
        (&sink("keep = 0"), "line 1: `keep` of the file sink is 0", "1 or more"),
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
