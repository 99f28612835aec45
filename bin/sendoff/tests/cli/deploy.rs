//! The examples in `deploy/` work.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sandbox::Sandbox;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_compose_file_fits_together() {
    let compose: Value = serde_saphyr::from_str(&read("compose.yaml")).unwrap();
    let services = keys(&compose["services"]);
    for name in ["postgres", "rabbitmq", "migrate", "roles", "relay"] {
        assert!(services.contains(&name), "{name} in {services:?}");
    }
    for (name, service) in compose["services"].as_object().unwrap() {
        for secret in service["secrets"].as_array().into_iter().flatten() {
            let source = secret.as_str().or(secret["source"].as_str()).unwrap();
            assert!(compose["secrets"].get(source).is_some(), "{secret} of {name}");
        }
        for other in service["depends_on"].as_object().into_iter().flatten() {
            assert!(services.contains(&other.0.as_str()), "{name} depends on {}", other.0);
        }
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let from = volume.as_str().unwrap().split(':').next().unwrap();
            match from.strip_prefix("./") {
                Some(file) => assert!(folder().join(file).is_file(), "{file} of {name}"),
                None => assert!(keys(&compose["volumes"]).contains(&from), "{from} of {name}"),
            }
        }
        if let Some(file) = service["build"]["dockerfile"].as_str() {
            assert!(folder().join("..").join(file).is_file(), "{file} of {name}");
        }
    }
    // Docker gives a relay more time to stop than the 25 s that it takes at most.
    assert_eq!(compose["services"]["relay"]["stop_grace_period"], "40s");
    // The owner of the tables migrates, and the relay has a login of its own.
    for (name, source) in [("migrate", "owner-url"), ("roles", "owner-url"), ("relay", "relay-url")] {
        let secret = &compose["services"][name]["secrets"][0];
        assert_eq!(
            (&secret["source"], &secret["target"]),
            (&source.into(), &"database-url".into()),
            "{name}"
        );
        assert!(read("sendoff.toml").contains("url_file = \"/run/secrets/database-url\""));
    }
    let after = |name: &str, other: &str| compose["services"][name]["depends_on"][other]["condition"].clone();
    assert_eq!(after("relay", "roles"), "service_completed_successfully");
    assert_eq!(after("roles", "migrate"), "service_completed_successfully");
}

#[test]
fn the_steps_above_the_compose_file_make_all_its_secrets() {
    let text = read("compose.yaml");
    let compose: Value = serde_saphyr::from_str(&text).unwrap();
    let steps = text.lines().filter_map(|line| line.strip_prefix("#     "));
    let script: String = steps
        .filter(|step| !step.starts_with("docker"))
        .map(|step| format!("{step}\n"))
        .collect();
    let sandbox = Sandbox::sqlite();
    std::fs::create_dir(sandbox.path("deploy")).unwrap();
    let ran = Command::new("sh")
        .args(["-euc", &script])
        .current_dir(sandbox.path(""))
        .status();
    assert!(ran.unwrap().success(), "{script}");
    let made = std::fs::read_to_string(sandbox.path("deploy/.env")).unwrap();
    let value = |name: &str| {
        let lines = made.lines().filter_map(|line| line.split_once('='));
        let found: Vec<&str> = lines.filter(|line| line.0 == name).map(|line| line.1).collect();
        assert_eq!(found.len(), 1, "{name} in {made}");
        found[0]
    };
    for (name, secret) in compose["secrets"].as_object().unwrap() {
        assert!(value(secret["environment"].as_str().unwrap()).len() >= 32, "{name}");
    }
    assert_ne!(value("POSTGRES_PASSWORD"), value("RABBITMQ_PASSWORD"));
    assert_ne!(value("POSTGRES_PASSWORD"), value("RELAY_PASSWORD"));
    // Compose inserts the passwords.
    let login = read("relay-login.sh");
    for (url, user, password) in [
        ("OWNER_URL", "shop", "POSTGRES_PASSWORD"),
        ("RELAY_URL", "sendoff_relay", "RELAY_PASSWORD"),
    ] {
        let url = value(url).replace(&format!("${{{password}}}"), value(password));
        assert!(
            url.starts_with(&format!("postgres://{user}:{}@", value(password))),
            "{url}"
        );
    }
    assert!(login.contains("CREATE ROLE sendoff_relay LOGIN") && login.contains("/run/secrets/relay-password"));
    for kept_out in [".dockerignore", ".gitignore"] {
        let text = read(&format!("../{kept_out}"));
        assert!(
            text.lines().any(|line| line.trim_start_matches('/') == "deploy/.env"),
            "{kept_out}"
        );
    }
}

#[test]
fn the_configuration_of_the_compose_file_can_be_used() {
    let sandbox = Sandbox::sqlite();
    let secrets = sandbox.path("");
    sandbox.write(
        "database-url",
        "postgres://shop:hunter2@postgres/shop?sslmode=disable\n",
    );
    sandbox.write("rabbitmq-password", "hunter2\n");
    let text = read("sendoff.toml").replace("/run/secrets/", &format!("{}/", secrets.display()));
    sandbox.write("sendoff.toml", &text);
    sandbox.ok(["config", "check"]);
    let shown = sandbox.ok(["config", "show"]).out;
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn the_image_has_every_sink() {
    let dockerfile = read("Dockerfile");
    assert!(
        dockerfile.contains("--package sendoff-cli --features full"),
        "{dockerfile}"
    );
}

#[test]
fn the_systemd_unit_starts_the_relay_and_lets_it_finish() {
    let unit = read("sendoff.service");
    for line in [
        "ExecStart=/usr/local/bin/sendoff --log-format json relay",
        "KillSignal=SIGTERM",
        "TimeoutStopSec=40",
        "Type=notify",
        "WatchdogSec=60",
    ] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    // The owner's URL is in another unit, which the relay waits for.
    let migrate = read("sendoff-migrate.service");
    assert!(migrate.contains("owner-url") && !unit.contains("owner-url"));
    assert!(unit.contains("\nRequires=sendoff-migrate.service\n") && !unit.contains("ExecStartPre"));
    for line in [
        "ExecStart=/usr/local/bin/sendoff migrate",
        "ExecStart=/usr/local/bin/sendoff migrate roles --apply",
        "Type=oneshot",
    ] {
        assert!(migrate.lines().any(|found| found == line), "{line}");
    }
    let sandbox = Sandbox::sqlite();
    for (name, text) in [("sendoff.service", &unit), ("sendoff-migrate.service", &migrate)] {
        let text = text.replace("/usr/local/bin/sendoff", env!("CARGO_BIN_EXE_sendoff"));
        sandbox.write(name, &text);
    }
    // Without systemd, its own check is not available.
    if let Ok(asked) = Command::new("systemd-analyze")
        .arg("verify")
        .arg(sandbox.path("sendoff.service"))
        .arg(sandbox.path("sendoff-migrate.service"))
        .output()
    {
        let said = String::from_utf8_lossy(&asked.stderr);
        let about_us: Vec<&str> = said.lines().filter(|line| line.contains("sendoff")).collect();
        assert!(about_us.is_empty(), "{about_us:?}");
    }
}

#[test]
fn the_kubernetes_manifests_fit_together() {
    let documents: Vec<Value> = read("kubernetes/relay.yaml")
        .split("\n---\n")
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect();
    let config: Value = serde_saphyr::from_str(&read("kubernetes/config.yaml")).unwrap();
    let (deployment, budget) = (&documents[0], &documents[1]);
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], *labels);
    assert_eq!(budget["spec"]["selector"]["matchLabels"], *labels);
    let pod = &deployment["spec"]["template"]["spec"];
    // Kubernetes gives a relay more time to stop than the 25 s that it takes at most.
    assert_eq!(pod["terminationGracePeriodSeconds"], 40);
    assert_eq!(pod["volumes"][0]["configMap"]["name"], config["metadata"]["name"]);
    let relay = &pod["containers"][0];
    // The owner of the tables migrates, and the relay has a login of its own.
    let login = |container: &Value| {
        let name = container["volumeMounts"][1]["name"].clone();
        let volumes = pod["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|volume| volume["name"] == name).unwrap();
        volume["secret"]["secretName"].clone()
    };
    let before = pod["initContainers"].as_array().unwrap();
    assert_eq!(
        before.iter().map(login).collect::<Vec<_>>(),
        ["sendoff-owner", "sendoff-owner"]
    );
    assert_eq!(before[1]["args"], serde_json::json!(["migrate", "roles", "--apply"]));
    assert_eq!(login(relay), "sendoff");
    assert_eq!(relay["args"].as_array().unwrap().last().unwrap(), "relay");
    let port = relay["ports"][0]["containerPort"].as_u64().unwrap();
    for (probe, path) in [
        ("startupProbe", "/startup"),
        ("livenessProbe", "/live"),
        ("readinessProbe", "/ready"),
    ] {
        let get = &relay[probe]["httpGet"];
        assert_eq!(
            (&get["path"], &get["port"]),
            (&path.into(), &relay["ports"][0]["name"]),
            "{probe}"
        );
    }
    let text = config["data"]["sendoff.toml"].as_str().unwrap();
    assert!(text.contains(&format!("listen = \"0.0.0.0:{port}\"")), "{text}");
    let sandbox = Sandbox::sqlite();
    sandbox.write("database-url", "postgres://shop:hunter2@postgres/shop\n");
    let secrets = sandbox.path("");
    sandbox.write(
        "sendoff.toml",
        &text.replace("/run/secrets/sendoff/", &format!("{}/", secrets.display())),
    );
    sandbox.ok(["config", "check"]);
}
