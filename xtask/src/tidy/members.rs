//! The crates of the workspace and what they depend on, as cargo sees them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::child;

/// One crate of the workspace.
pub(crate) struct Member {
    pub(crate) name: String,
    /// Relative to the root.
    pub(crate) folder: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency that is compiled into the crate; what only its tests use is not here.
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether it is a crate of this workspace.
    pub(crate) own: bool,
}

/// All crates of the workspace.
pub(crate) struct Members(pub(crate) Vec<Member>);

impl Members {
    /// Asks cargo.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut cargo = Command::new("cargo");
        cargo
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(root);
        let answer = child::run_quietly(&mut cargo).context("cargo could not describe the workspace")?;
        Self::parse(&answer)
    }

    fn parse(answer: &str) -> Result<Self> {
        let answer: Value = serde_json::from_str(answer).context("`cargo metadata` did not answer in JSON")?;
        let root = text(&answer, "workspace_root")?;
        let packages = answer["packages"]
            .as_array()
            .context("`cargo metadata` names no packages")?;
        packages
            .iter()
            .map(|package| member(package, root))
            .collect::<Result<_>>()
            .map(Self)
    }

    /// Crates out of names, folders and dependencies; a dependency in the list of names is a crate of the workspace.
    #[cfg(test)]
    pub(crate) fn of(members: &[(&str, &str, &[&str])]) -> Self {
        let own = |name: &str| members.iter().any(|(member, ..)| *member == name);
        let dependency = |name: &&str| Dependency {
            name: (*name).to_owned(),
            own: own(name),
        };
        let member = |(name, folder, dependencies): &(&str, &str, &[&str])| Member {
            name: (*name).to_owned(),
            folder: (*folder).to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
        };
        Self(members.iter().map(member).collect())
    }
}

fn member(package: &Value, root: &str) -> Result<Member> {
    let manifest = text(package, "manifest_path")?;
    let folder = manifest
        .trim_start_matches(root)
        .trim_start_matches('/')
        .trim_end_matches("/Cargo.toml");
    let dependencies = package["dependencies"]
        .as_array()
        .context("a package without a list of dependencies")?;
    let compiled_in = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
    let dependency = |dependency: &Value| -> Result<Dependency> {
        Ok(Dependency {
            name: text(dependency, "name")?.to_owned(),
            own: dependency["path"].is_string(),
        })
    };
    Ok(Member {
        name: text(package, "name")?.to_owned(),
        folder: folder.to_owned(),
        dependencies: compiled_in.map(dependency).collect::<Result<_>>()?,
    })
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key]
        .as_str()
        .with_context(|| format!("`cargo metadata` gave no {key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_only_dependencies_are_left_out() {
        let answer = r#"{"workspace_root": "/w", "packages": [{"name": "a", "manifest_path": "/w/crates/a/Cargo.toml",
            "dependencies": [
                {"name": "b", "kind": null, "path": "/w/crates/b"},
                {"name": "c", "kind": "dev", "path": "/w/crates/c"},
                {"name": "serde", "kind": null}]}]}"#;
        let members = Members::parse(answer).unwrap().0;
        assert_eq!(
            (members[0].name.as_str(), members[0].folder.as_str()),
            ("a", "crates/a")
        );
        let found: Vec<_> = members[0]
            .dependencies
            .iter()
            .map(|d| (d.name.as_str(), d.own))
            .collect();
        assert_eq!(found, [("b", true), ("serde", false)]);
    }
}
