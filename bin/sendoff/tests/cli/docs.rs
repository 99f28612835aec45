//! The program accepts the configurations in the docs.

use std::path::{Path, PathBuf};

use sendoff_testkit::servers::Authority;

use crate::sandbox::Sandbox;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The pages about sinks.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(folder().join("sinks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        // Handlers are functions, which no configuration has.
        .filter(|page| !page.ends_with("handlers.md"))
        .collect();
    pages.push(folder().join("celery.md"));
    pages.sort();
    pages
}

/// The TOML blocks that have a section.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    let behind = page.split("```toml\n").skip(1);
    let blocks = behind.map(|rest| rest.split("```").next().unwrap());
    blocks.filter(|block| block.starts_with('['))
}

/// A block, completed with a database, a sink, and a route to each sink. Its certificate authority is in this file.
fn completed(block: &str, authority: &Path) -> String {
    let mut parts = block.split("ca_file = \"");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (_, rest) = part.split_once('"').unwrap();
        text = format!("{text}ca_file = {authority:?}{rest}");
    }
    if !text.contains("[database]") {
        text.push_str("\n[database]\nurl = \"sqlite:a.db\"\n");
    }
    if !text.contains("[[sink]]") {
        text.push_str("\n[[sink]]\nname = \"out\"\ntype = \"stdout\"\n");
    }
    if !text.contains("[[route]]") {
        let names = text.lines().filter_map(|line| line.strip_prefix("name = "));
        text = format!(
            "{text}\n[[route]]\nmatch = \"*\"\nto = [{}]\n",
            names.collect::<Vec<_>>().join(", ")
        );
    }
    text
}

#[test]
fn every_configuration_on_a_page_about_sinks_can_be_used() {
    let sandbox = Sandbox::sqlite();
    sandbox.write("ca.pem", &Authority::new().pem());
    let mut checked = 0;
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&page).unwrap();
        let before = checked;
        for block in blocks(&text) {
            checked += 1;
            sandbox.write("sendoff.toml", &completed(block, &sandbox.path("ca.pem")));
            let mut command = sandbox.command(["config", "check"]);
            for variable in block.split("env = \"").skip(1) {
                let variable = variable.split('"').next().unwrap();
                command.env(variable, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
            }
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            if block.contains("type = \"kafka\"") && !cfg!(feature = "kafka") {
                assert!(said.contains("built without Kafka"), "{name}: {said}\n{block}");
            } else {
                assert!(output.status.success(), "{name}: {said}\n{block}");
            }
        }
        assert!(checked > before, "{name} shows no configuration");
    }
    assert!(checked >= 10, "only {checked} were found");
}
