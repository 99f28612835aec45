//! `init`, `config show`, `config check`, and errors in a configuration.

use crate::sandbox::Sandbox;

/// A sandbox without a configuration file.
fn bare() -> Sandbox {
    let sandbox = Sandbox::sqlite();
    std::fs::remove_file(sandbox.path("sendoff.toml")).unwrap();
    sandbox
}

#[test]
fn what_init_writes_can_be_used_at_once() {
    let sandbox = bare();
    let ran = sandbox.ok(["init"]);
    assert_eq!(ran.out, "wrote sendoff.toml\n");
    assert!(sandbox.read("sendoff.toml").contains("[relay]"));
    sandbox.ok(["config", "check"]);
    sandbox.ok(["migrate"]);
    let id = sandbox.emit(&["hello", "--payload", "{}"]);
    let ran = sandbox.ok(["relay", "--once"]);
    assert!(ran.out.contains(&id), "{ran:?}");
}

#[test]
fn init_does_not_write_over_a_file_unless_forced() {
    let sandbox = bare();
    sandbox.write("sendoff.toml", "# mine\n");
    sandbox
        .run(["init"])
        .fails_with_reason(2, &["the file already exists", "--force"]);
    assert_eq!(sandbox.read("sendoff.toml"), "# mine\n");
    sandbox.ok(["init", "--force"]);
    assert!(sandbox.read("sendoff.toml").contains("[database]"));
}

#[test]
fn init_writes_where_it_is_told() {
    let sandbox = bare();
    let written = sandbox.json(&["init", "--config", "other.toml"]);
    assert_eq!(written["written"], "other.toml");
    sandbox.ok(["config", "check", "--config", "other.toml"]);
    sandbox
        .run(["init", "--config", "no/folder/x.toml"])
        .fails_with_reason(2, &["no/folder/x.toml"]);
}

#[test]
fn config_show_tells_what_counts_without_passwords() {
    let sandbox = bare();
    sandbox.write(
        "sendoff.toml",
        "[database]\nurl = \"postgres://shop:hunter2@db/shop\"\n[relay]\nlease = \"20s\"\n",
    );
    let mut command = sandbox.command(["config", "show"]);
    let output = command.env("SENDOFF_RELAY__HEARTBEAT", "2s").output().unwrap();
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{err}");
    for line in [
        "lease = \"20s\"",
        "heartbeat = \"2s\"",
        "batch = 3000",
        "postgres://shop:***@db/shop",
    ] {
        assert!(out.contains(line), "{line} in {out}");
    }
    assert!(!out.contains("hunter2") && !err.contains("hunter2"));
    let shown = sandbox.json(&["config", "show", "--database", "sqlite:x.db"]);
    assert_eq!(shown["database"]["url"], "sqlite:x.db");
    assert_eq!(shown["relay"]["lease"], "20s");
}

#[test]
fn what_config_show_prints_is_a_configuration() {
    let sandbox = bare();
    sandbox.ok(["init"]);
    let shown = sandbox.ok(["config", "show"]).out;
    sandbox.write("shown.toml", &shown);
    assert_eq!(sandbox.ok(["config", "show", "--config", "shown.toml"]).out, shown);
}

#[test]
fn secrets_that_are_kept_elsewhere_are_shown_with_their_place_and_can_be_read_again() {
    let sandbox = bare();
    let sinks = "[database]\nurl = \"sqlite:a.db\"\n\
                 [[sink]]\nname = \"hook\"\ntype = \"http\"\nurl = { file = \"url\" }\nbody = { file = \"body\" }\n\
                 secrets = [{ env = \"A\" }, { file = \"b\" }]\n\
                 headers = { authorization = { env = \"C\" }, x-tenant = \"{header:tenant}\" }\n\
                 [[sink]]\nname = \"nats\"\ntype = \"nats\"\nurl = \"nats://h\"\nuser = \"me\"\npassword = { env = \"D\" }\n";
    sandbox.write("sendoff.toml", sinks);
    let shown = sandbox.ok(["config", "show"]).out;
    sandbox.write("shown.toml", &shown);
    assert_eq!(sandbox.ok(["config", "show", "--config", "shown.toml"]).out, shown);
    let json = sandbox.json(&["config", "show"]);
    let (hook, nats) = (&json["sink"][0], &json["sink"][1]);
    assert_eq!(hook["url"]["file"], "url");
    assert_eq!(
        (&hook["secrets"][0]["env"], &hook["secrets"][1]["file"]),
        (&"A".into(), &"b".into())
    );
    assert_eq!(hook["headers"]["authorization"]["env"], "C");
    assert_eq!(hook["headers"]["x-tenant"], "{header:tenant}");
    assert_eq!(nats["password"]["env"], "D");
}

#[test]
fn the_environment_wins_over_the_file_and_flags_over_both() {
    let sandbox = bare();
    sandbox.write("sendoff.toml", "[database]\nurl = \"sqlite:file.db\"\n");
    let shown = |command: &mut std::process::Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
    let variable = ("SENDOFF_DATABASE__URL", "sqlite:variable.db");
    let out = shown(sandbox.command(["config", "show"]).env(variable.0, variable.1));
    assert!(out.contains("sqlite:variable.db"), "{out}");
    let out = shown(
        sandbox
            .command(["config", "show", "--database", "sqlite:flag.db"])
            .env(variable.0, variable.1),
    );
    assert!(out.contains("sqlite:flag.db"), "{out}");
}

#[test]
fn every_mistake_in_the_file_is_told_with_its_line() {
    let sink = "[[sink]]\nname = \"out\"\ntype = \"stdout\"\n";
    for (text, words) in [
        (
            "[relay]\nlesae = \"10s\"\n",
            &["line 2", "lesae", "did you mean lease"][..],
        ),
        ("[relay]\nlease = \"ten\"\n", &["line 2", "ten", "10s"]),
        ("[relay]\nlease = 10\n", &["line 2", "lease"]),
        (
            "[relay]\nlease = \"1s\"\nheartbeat = \"1s\"\n",
            &["heartbeat", "three times"],
        ),
        ("[nonsense]\n", &["nonsense"]),
        ("[relay\n", &["line 1"]),
        (
            "[database]\nurl = \"mssql://root:hunter2@db/x\"\n",
            &["line 2", "postgres://"],
        ),
        ("[[sink]]\nname = \"out\"\ntype = \"fax\"\n", &["fax", "stdout"]),
        ("[[sink]]\nname = \"out\"\ntype = \"file\"\n", &["path"]),
        ("[[route]]\nmatch = \"*\"\nto = [\"nowhere\"]\n", &["nowhere"]),
        ("[[route]]\nmatch = \"order.[\"\nto = [\"out\"]\n", &["order.["]),
        ("[database]\nurl = \"sqlite:a.db\"\n", &["no sink"]),
        ("", &["no database", "sendoff init"]),
    ] {
        let sandbox = bare();
        let rest = if text.contains("relay") { sink } else { "" };
        let database = if text.contains("heartbeat") {
            "[database]\nurl = \"sqlite:a.db\"\n"
        } else {
            ""
        };
        let route = if rest.is_empty() {
            ""
        } else {
            "[[route]]\nmatch = \"*\"\nto = [\"out\"]\n"
        };
        sandbox.write("sendoff.toml", &format!("{text}{rest}{route}{database}"));
        let ran = sandbox.run(["config", "check"]);
        ran.fails_with_reason(2, words);
        assert!(!ran.err.contains("hunter2"), "{ran:?}");
        assert_eq!(ran.out, "");
    }
}

#[test]
fn kafka_that_was_not_built_in_is_refused_with_advice() {
    let sandbox = bare();
    let lines = "[database]\nurl = \"sqlite:a.db\"\n[[sink]]\nname = \"out\"\ntype = \"kafka\"\nbrokers = [\"a:9092\"]\n\
                 [[route]]\nmatch = \"*\"\nto = [\"out\"]\n";
    sandbox.write("sendoff.toml", lines);
    if cfg!(feature = "kafka") {
        sandbox.ok(["config", "check"]);
    } else {
        let words = ["line 3", "built without Kafka", "--features kafka"];
        sandbox.run(["config", "check"]).fails_with_reason(2, &words);
    }
}

#[test]
fn a_file_that_is_missing_is_told() {
    let sandbox = bare();
    sandbox
        .run(["config", "check", "--config", "gone.toml"])
        .fails_with_reason(2, &["gone.toml", "sendoff init"]);
}

#[test]
fn a_mistake_in_a_variable_or_flag_names_it() {
    let sandbox = bare();
    sandbox.ok(["init"]);
    let output = sandbox
        .command(["config", "check"])
        .env("SENDOFF_RELAY__LEASE", "ten")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("SENDOFF_RELAY__LEASE"), "{err}");
    let ran = sandbox.run(["ls", "--database", "mssql://root:hunter2@db/x"]);
    ran.fails_with_reason(2, &["--database"]);
    assert!(!ran.err.contains("hunter2"), "{ran:?}");
}

#[test]
fn config_check_says_that_all_is_fine() {
    let sandbox = bare();
    sandbox.ok(["init"]);
    assert_eq!(sandbox.ok(["config", "check"]).out, "the configuration is valid\n");
    assert_eq!(sandbox.json(&["config", "check"]), serde_json::json!({"ok": true}));
}

#[test]
fn a_command_line_that_cannot_be_used_ends_with_2() {
    let sandbox = bare();
    for args in [
        &["nonsense"][..],
        &["show", "no-uuid"],
        &["emit"],
        &["emit", "t", "--delay", "soon"],
        &[],
    ] {
        let ran = sandbox.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?} {ran:?}");
        assert!(ran.err.contains("Usage:") || ran.err.contains("--help"), "{ran:?}");
    }
}
