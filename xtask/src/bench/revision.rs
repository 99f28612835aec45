//! Revisions of this project, as git knows them.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::child;

/// A commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Revision {
    pub(super) commit: String,
    /// What git shortens it to.
    short: String,
    /// Whether the checkout holds more than the commit.
    changed: bool,
}

/// The repository that a checkout belongs to.
pub(super) struct Repository {
    root: PathBuf,
}

impl Repository {
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The commit that `name` stands for: a commit, a tag, a branch, `HEAD~3`.
    pub(super) fn find(&self, name: &str) -> Result<Revision> {
        let commit = self.resolve(name).with_context(|| {
            format!(
                "{name:?} is no revision of this repository: `git log --oneline --all` lists those that it has, \
                 and `git fetch` gets those that it does not have yet"
            )
        })?;
        self.named(commit, false)
    }

    /// The commit of the checkout, and whether there are changes since.
    pub(super) fn head(&self) -> Result<Revision> {
        let commit = self.resolve("HEAD").context("there is no commit here yet")?;
        let changes = self.git(["status", "--porcelain"])?;
        self.named(commit, !changes.is_empty())
    }

    /// Runs git in the checkout, and returns what it printed.
    pub(super) fn git<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Result<String> {
        let mut git = Command::new("git");
        // Variables of a hook that this may run in would name another checkout.
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            git.env_remove(variable);
        }
        let output = child::run_quietly(git.current_dir(&self.root).args(arguments))?;
        Ok(output.trim_end().to_owned())
    }

    fn resolve(&self, name: &str) -> Result<String> {
        let commit = format!("{name}^{{commit}}");
        self.git(["rev-parse", "--verify", &commit])
    }

    fn named(&self, commit: String, changed: bool) -> Result<Revision> {
        let short = self.git(["rev-parse", "--short", &commit])?;
        Ok(Revision { commit, short, changed })
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short)?;
        f.write_str(if self.changed { " with uncommitted changes" } else { "" })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A repository with one commit that has the tag `first`.
    pub(crate) fn repository() -> (Repository, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::at(folder.path());
        std::fs::write(folder.path().join("file"), "one").unwrap();
        for arguments in [
            "init --quiet",
            "config user.name Somebody",
            "config user.email somebody@example.org",
            "add file",
            "commit --quiet --no-gpg-sign --message=first",
            "tag --no-sign first",
        ] {
            repository.git(arguments.split(' ')).unwrap();
        }
        (repository, folder)
    }

    #[test]
    fn names_of_one_commit_are_one_revision() {
        let (repository, _folder) = repository();
        let head = repository.head().unwrap();
        assert_eq!(repository.find("first").unwrap(), head);
        assert_eq!(repository.find(&head.commit).unwrap(), head);
        assert_eq!(repository.find(&head.commit[..8]).unwrap(), head);
        assert_eq!(head.to_string(), head.short);
    }

    #[test]
    fn unknown_revision_is_named() {
        let (repository, _folder) = repository();
        // `first:file` exists, but is no commit.
        for name in ["no-such-branch", "", "first:file", "--help"] {
            let error = repository.find(name).unwrap_err().to_string();
            assert!(error.contains(&format!("{name:?} is no revision")), "{error}");
        }
    }

    #[test]
    fn changed_checkout_is_called_so() {
        let (repository, folder) = repository();
        std::fs::write(folder.path().join("file"), "two").unwrap();
        let head = repository.head().unwrap().to_string();
        assert!(head.ends_with(" with uncommitted changes"), "{head}");
        // The commit itself has not changed.
        assert!(!repository.find("first").unwrap().changed);
    }
}
