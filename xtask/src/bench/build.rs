//! Building the benchmark programs of two checkouts without mixing them up.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;

use anyhow::{Context, Result, bail};

use super::PACKAGE;
use super::revision::Revision;
use crate::{child, interrupt, nested};

/// The target folder of comparisons, for this process alone as long as it lives.
///
/// In one target folder cargo gives the crates of all checkouts the same file names, and takes what another checkout compiled for
/// fresh if that is newer than the sources. So comparisons have a folder of their own, from which the crates of the workspace are
/// removed whenever the checkout changes; what stays, and is compiled once for both, are the dependencies.
pub(super) struct Target {
    folder: PathBuf,
    _lock: File,
}

impl Target {
    /// Waits for other comparisons to have built theirs.
    pub(super) fn open() -> Result<Self> {
        Self::lock(nested::target()?.join("against"))
    }

    fn lock(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).with_context(|| format!("could not create {}", folder.display()))?;
        let path = folder.join("lock");
        let lock = File::create(&path).with_context(|| format!("could not create {}", path.display()))?;
        let mut told = false;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { folder, _lock: lock }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("could not lock {}", path.display()));
                }
            }
            if !std::mem::replace(&mut told, true) {
                eprintln!(
                    "another `cargo xtask bench --against` is building in {}: waiting",
                    folder.display()
                );
            }
            interrupt::check()?;
            thread::sleep(child::POLL);
        }
    }

    /// Builds the benchmark program of the checkout `tree` in release mode and copies it into the folder `into`.
    pub(super) fn build(&self, tree: &Path, revision: &Revision, into: &Path) -> Result<PathBuf> {
        eprintln!("building the benchmarks of {revision}");
        self.remove_other_checkouts(tree)
            .with_context(|| format!("could not prepare the build of {revision}"))?;
        if !self
            .cargo(tree, &["build", "--profile", "bench", "--package", PACKAGE])?
            .success()
        {
            bail!(
                "could not build the benchmark program of {revision}: it has none, or this compiler or this machine cannot build \
                 it; choose another revision"
            );
        }
        let (built, program) = (self.folder.join("release").join(PACKAGE), into.join(PACKAGE));
        fs::create_dir_all(into)?;
        // The next build overwrites it.
        fs::copy(&built, &program)
            .with_context(|| format!("could not copy {} to {}", built.display(), program.display()))?;
        Ok(program)
    }

    /// Removes what was compiled of the workspace, unless this very checkout was the last to compile here.
    fn remove_other_checkouts(&self, tree: &Path) -> Result<()> {
        let note = self.folder.join("last-checkout");
        let path = tree.as_os_str().as_encoded_bytes();
        if fs::read(&note).is_ok_and(|last| last == path) {
            return Ok(());
        }
        // This also removes dependencies that have the name of a test of the workspace, like `http`; they are compiled again.
        // The note is written after the removal: an interrupted one is repeated.
        let status = self.cargo(tree, &["clean", "--quiet", "--profile", "bench", "--workspace"])?;
        if !status.success() {
            bail!("`cargo clean` ended with {status}");
        }
        fs::write(&note, path).with_context(|| format!("could not write {}", note.display()))
    }

    fn cargo(&self, tree: &Path, arguments: &[&str]) -> Result<ExitStatus> {
        let mut cargo = nested::cargo()?;
        cargo.current_dir(tree).env("CARGO_TARGET_DIR", &self.folder);
        child::run(cargo.args(arguments))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::revision::Repository;
    use super::*;

    /// A workspace whose benchmark program says `word`.
    fn workspace(folder: &Path, word: &str) {
        let package = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        let files = [
            (
                "Cargo.toml",
                "[workspace]\nmembers = [\"bench\", \"word\"]\nresolver = \"3\"\n".to_owned(),
            ),
            ("word/Cargo.toml", package("word")),
            ("word/src/lib.rs", format!("pub const WORD: &str = \"{word}\";\n")),
            (
                "bench/Cargo.toml",
                package(PACKAGE) + "[dependencies]\nword.path = \"../word\"\n",
            ),
            (
                "bench/src/main.rs",
                "fn main() { print!(\"{}\", word::WORD) }\n".to_owned(),
            ),
        ];
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn each_program_is_of_its_own_checkout() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::lock(folder.path().join("target")).unwrap();
        let root = nested::root().unwrap();
        let head = Repository::at(&root).head().unwrap();
        // Both are older than either build, as two checkouts are that somebody works in.
        let sides = ["ours", "theirs"];
        for side in sides {
            workspace(&folder.path().join(side), side);
        }
        for (side, number) in ["ours", "theirs", "theirs", "ours"].iter().zip(1..) {
            let into = folder.path().join(format!("built-{number}"));
            let program = target.build(&folder.path().join(side), &head, &into).unwrap();
            assert_eq!(child::run_quietly(&mut Command::new(program)).unwrap(), *side);
        }
    }

    #[test]
    fn checkout_without_benchmarks_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::lock(folder.path().join("target")).unwrap();
        let head = Repository::at(&nested::root().unwrap()).head().unwrap();
        let tree = folder.path().join("tree");
        workspace(&tree, "word");
        fs::write(
            tree.join("Cargo.toml"),
            "[workspace]\nmembers = [\"word\"]\nresolver = \"3\"\n",
        )
        .unwrap();
        let error = target.build(&tree, &head, folder.path()).unwrap_err();
        let expected = format!("could not build the benchmark program of {head}");
        assert!(error.to_string().contains(&expected), "{error:#}");
    }
}
