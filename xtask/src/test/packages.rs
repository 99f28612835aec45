//! Every crate that is published can be packaged, in the order of their dependencies and without the network.
//!
//! What a registry would refuse appears here: a dependency without a version, or tests that need a crate which cannot be
//! published before this one. The packages are not compiled.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::report::Outcome;
use crate::{child, nested};

/// The files that must be in the folder of a published crate, equal to those at the root. They are copies: not every file
/// system and not every transport keeps links.
const FILES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// What the registry shows about a crate.
const FIELDS: &[&str] = &["description", "license", "readme", "repository", "rust_version"];

/// Packages all published crates at once: cargo then takes the packages of this workspace for those of the registry.
pub(crate) fn check() -> Result<Outcome> {
    let mut metadata = nested::cargo()?;
    metadata.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let answer = child::run_quietly(&mut metadata).context("cargo could not describe the workspace")?;
    let answer: Value = serde_json::from_str(&answer).context("`cargo metadata` did not answer in JSON")?;
    let published = published(&answer)?;
    let root = nested::root()?;
    let missing: Vec<String> = published.iter().flat_map(|package| missing(package, &root)).collect();
    if !missing.is_empty() {
        bail!("{}", missing.join("\n"));
    }
    let mut package = nested::cargo()?;
    package.args(["package", "--quiet", "--no-verify", "--allow-dirty", "--offline"]);
    for name in published.iter().filter_map(|package| package["name"].as_str()) {
        package.args(["--package", name]);
    }
    let outcome = Outcome::of(child::run(&mut package)?);
    if !outcome.broken {
        println!("{} crates can be packaged", published.len());
    }
    Ok(outcome)
}

/// The crates without `publish = false`.
fn published(metadata: &Value) -> Result<Vec<&Value>> {
    let packages = metadata["packages"]
        .as_array()
        .context("`cargo metadata` names no packages")?;
    let published: Vec<&Value> = packages.iter().filter(|package| package["publish"].is_null()).collect();
    if published.is_empty() {
        bail!("no crate is published: every Cargo.toml says `publish = false`");
    }
    Ok(published)
}

/// What a crate lacks, one line each.
fn missing(package: &Value, root: &Path) -> Vec<String> {
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let folder = Path::new(manifest).parent().unwrap_or(Path::new(""));
    let fields = FIELDS.iter().filter(|field| !package[**field].is_string());
    let files = FILES.iter().filter(|file| {
        let here = std::fs::read(folder.join(file));
        here.is_err() || here.ok() != std::fs::read(root.join(file)).ok()
    });
    fields
        .map(|field| format!("{manifest}: add `{}`", field.replace('_', "-")))
        .chain(files.map(|file| {
            format!(
                "{}: is not a copy of the one at the root: copy it",
                folder.join(file).display()
            )
        }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn crate_that_is_not_published_is_left_out() {
        let metadata = json!({"packages": [{"name": "shown"}, {"name": "internal", "publish": []}]});
        let names: Vec<&Value> = published(&metadata)
            .unwrap()
            .iter()
            .map(|package| &package["name"])
            .collect();
        assert_eq!(names, ["shown"]);
    }

    #[test]
    fn licences_and_fields_that_are_missing_are_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("LICENSE-MIT"), "here").unwrap();
        std::fs::write(folder.path().join("LICENSE-APACHE"), "../LICENSE-APACHE").unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("LICENSE-MIT"), "here").unwrap();
        std::fs::write(root.path().join("LICENSE-APACHE"), "the licence").unwrap();
        let package = json!({
            "manifest_path": folder.path().join("Cargo.toml"),
            "description": "A crate", "license": "MIT", "repository": "here", "rust_version": "1.85",
        });
        let missing = missing(&package, root.path());
        assert_eq!(missing.len(), 2, "{missing:?}");
        assert!(missing[0].ends_with("Cargo.toml: add `readme`"), "{missing:?}");
        assert!(missing[1].contains("LICENSE-APACHE: is not a copy"), "{missing:?}");
    }
}
