//! The table is complete, and its rows are true.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::*;
use crate::config::Config;

const PASSWORD: &str = "hunter2";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(row: &Row) -> String {
    fs::read_to_string(root().join(row.page)).unwrap_or_else(|error| panic!("{}: {error}", row.page))
}

/// The first `[[sink]]` of this type on its page, without its name and type.
fn shown(row: &Row) -> Table {
    let text = page(row);
    let blocks = text.split("```toml\n").skip(1);
    let mut sinks = blocks.flat_map(|block| {
        let block: Table = block.split("```").next().unwrap().parse().unwrap_or_default();
        let sinks = block.get("sink").and_then(Value::as_array).cloned();
        sinks.unwrap_or_default()
    });
    let of_type = |sink: &Value| sink.get("type").and_then(Value::as_str) == Some(row.name);
    let Some(Value::Table(mut table)) = sinks.find(of_type) else {
        panic!("{} shows no [[sink]] with type = {:?}", row.page, row.name);
    };
    for common in ["name", "type", "batch", "concurrency", "timeout", "rate"] {
        table.remove(common);
    }
    table
}

fn read(of: &'static dyn row::Read, table: &Table) -> Result<Box<dyn Settings>, toml::de::Error> {
    of.read(toml::de::Deserializer::parse(&table.to_string())?)
}

fn configured() -> impl Iterator<Item = (&'static Row, &'static dyn row::Read)> {
    SINKS.iter().filter_map(|row| match row.support {
        Configured(of) => Some((row, of)),
        _ => None,
    })
}

/// A value with a password in it, for a setting of this name.
fn with_password(setting: &str, usual: Option<&Value>) -> Value {
    match setting {
        "url" => {
            let usual = usual.and_then(Value::as_str).unwrap();
            let (scheme, rest) = usual.split_once("://").unwrap();
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://me:{PASSWORD}@{host}").into()
        }
        "headers" => Table::from_iter([("authorization".to_owned(), PASSWORD.into())]).into(),
        "secrets" => vec![PASSWORD].into(),
        _ => PASSWORD.into(),
    }
}

#[test]
fn every_crate_of_a_sink_has_one_row() {
    let crates: BTreeSet<String> = fs::read_dir(root().join("sinks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|folder| folder.join("Cargo.toml").exists())
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    let rows: BTreeSet<String> = SINKS.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(rows, crates);
    assert_eq!(rows.len(), SINKS.len(), "a name has two rows");
}

#[test]
fn every_row_has_a_page_that_the_readmes_link_to() {
    for row in SINKS {
        assert!(page(row).starts_with("# "), "{} has no title", row.page);
        for readme in ["README.md", "docs/sinks/README.md"] {
            let text = fs::read_to_string(root().join(readme)).unwrap();
            let (folder, page) = (Path::new(readme).parent().unwrap(), Path::new(row.page));
            let link = page.strip_prefix(folder).map_or_else(
                |_| format!("../{}", page.file_name().unwrap().to_str().unwrap()),
                |page| page.to_str().unwrap().to_owned(),
            );
            assert!(text.contains(&format!("]({link})")), "{readme} does not link to {link}");
        }
    }
}

#[test]
fn every_row_says_how_its_sink_is_configured() {
    let example = Config::example();
    for row in SINKS {
        match row.support {
            Configured(of) => {
                read(of, &shown(row)).unwrap_or_else(|error| panic!("{}: {error}", row.page));
            }
            Support::NotBuilt(why) => {
                shown(row);
                assert!(why.ends_with(')') && why.contains("--features "), "{}: {why}", row.name);
            }
            Elsewhere(_) => {
                let with_type = format!("type = {:?}", row.name);
                assert!(!example.contains(&with_type) && !page(row).contains(&with_type));
            }
        }
    }
}

#[test]
fn no_password_of_a_sink_is_printed() {
    for (row, of) in configured() {
        let usual = shown(row);
        for setting in of.secrets() {
            let mut table = usual.clone();
            table.insert((*setting).to_owned(), with_password(setting, usual.get(*setting)));
            let read = read(of, &table).unwrap_or_else(|error| panic!("{} of {}: {error}", setting, row.name));
            let (json, toml) = (serde_json::to_string(&read).unwrap(), toml::to_string(&*read).unwrap());
            for printed in [format!("{read:?}"), json, toml] {
                assert!(!printed.contains(PASSWORD), "{setting} of {}: {printed}", row.name);
            }
        }
    }
}

/// A setting whose type hides its value is one of the row's secrets, also if the row does not say so.
#[test]
fn every_setting_that_hides_its_value_is_named_in_the_row() {
    let named: Vec<&str> = configured().flat_map(|(_, of)| of.secrets()).copied().collect();
    for (row, of) in configured() {
        let usual = shown(row);
        for setting in ["password", "token", "nkey", "body", "secrets", "url"] {
            assert!(named.contains(&setting), "{setting} is in no row");
            let mut table = usual.clone();
            if setting == "url" && !usual.contains_key(setting) {
                continue;
            }
            table.insert(setting.to_owned(), with_password(setting, usual.get(setting)));
            if read(of, &table).is_ok() {
                assert!(
                    of.secrets().contains(&setting),
                    "{setting} of {} is not in its row",
                    row.name
                );
            }
        }
    }
}

#[test]
fn settings_are_equal_if_their_types_and_values_are() {
    let (row, of) = configured().find(|(row, _)| row.name == "redis").unwrap();
    let (usual, mut other) = (shown(row), shown(row));
    other.insert("cluster".to_owned(), true.into());
    let (_, stdout) = configured().find(|(row, _)| row.name == "stdout").unwrap();
    assert!(*read(of, &usual).unwrap() == *read(of, &usual).unwrap());
    assert!(*read(of, &usual).unwrap() != *read(of, &other).unwrap());
    assert!(*read(of, &usual).unwrap() != *read(stdout, &Table::new()).unwrap());
}
