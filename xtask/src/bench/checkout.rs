//! A checkout of another revision, for the time of one run.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::revision::{Repository, Revision};

/// A detached worktree of the repository. Dropping it removes the worktree, also when the run was interrupted.
pub(super) struct Checkout<'a> {
    repository: &'a Repository,
    path: PathBuf,
}

impl<'a> Checkout<'a> {
    /// Checks the revision out into `path`, which must not exist yet.
    pub(super) fn create(repository: &'a Repository, revision: &Revision, path: PathBuf) -> Result<Self> {
        // Before it is made: what an interrupted git leaves behind is removed, too.
        let checkout = Self { repository, path };
        let add = [
            "-c",
            "core.hooksPath=/dev/null",
            "worktree",
            "add",
            "--detach",
            "--quiet",
        ];
        let arguments = add
            .iter()
            .map(AsRef::as_ref)
            .chain([checkout.path.as_os_str(), revision.commit.as_ref()]);
        repository
            .git(arguments)
            .with_context(|| format!("could not check out {revision} into {}", checkout.path.display()))?;
        Ok(checkout)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Checkout<'_> {
    fn drop(&mut self) {
        let remove = ["worktree", "remove", "--force"].map(AsRef::as_ref);
        if self
            .repository
            .git(remove.into_iter().chain([self.path.as_os_str()]))
            .is_ok()
        {
            return;
        }
        // Git does not know it (yet, or any more). The folder is ours; git forgets entries whose folder is gone.
        let _ = std::fs::remove_dir_all(&self.path);
        if let Err(error) = self.repository.git(["worktree", "prune"]) {
            eprintln!("the worktree {} is still listed in git: {error:#}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::revision::tests::repository;
    use super::*;

    fn worktrees(repository: &Repository) -> usize {
        let list = repository.git(["worktree", "list", "--porcelain"]).unwrap();
        list.lines().filter(|line| line.starts_with("worktree ")).count()
    }

    #[test]
    fn checkout_holds_the_revision_and_is_gone_afterwards() {
        let (repository, folder) = repository();
        let first = repository.find("first").unwrap();
        std::fs::write(folder.path().join("file"), "changed").unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("tree");
        let checkout = Checkout::create(&repository, &first, path.clone()).unwrap();
        assert_eq!(std::fs::read_to_string(path.join("file")).unwrap(), "one");
        // What a build leaves in it does not keep it.
        std::fs::write(checkout.path().join("built"), "by a build").unwrap();
        assert_eq!(worktrees(&repository), 2);
        drop(checkout);
        assert!(!path.exists());
        assert_eq!(worktrees(&repository), 1);
    }

    #[test]
    fn checkout_that_git_lost_is_removed_too() {
        let (repository, _folder) = repository();
        let first = repository.find("first").unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("tree");
        let checkout = Checkout::create(&repository, &first, path.clone()).unwrap();
        std::fs::remove_file(path.join(".git")).unwrap();
        drop(checkout);
        assert!(!path.exists());
        assert_eq!(worktrees(&repository), 1);
    }
}
