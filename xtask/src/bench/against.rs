//! The benchmark programs of this checkout and of another revision.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::build::Target;
use super::checkout::Checkout;
use super::revision::{Repository, Revision};
use crate::{child, nested};

/// Two programs that can take turns. They are removed when this is dropped.
pub(super) struct Against {
    ours: Program,
    theirs: Program,
    _folder: TempDir,
}

struct Program {
    revision: Revision,
    path: PathBuf,
}

impl Against {
    /// Builds this checkout and the revision `name`. `selection` is what they are to measure.
    pub(super) fn build(name: &str, selection: &[&str]) -> Result<Self> {
        let root = nested::root()?;
        let repository = Repository::at(&root);
        let (head, other) = (repository.head()?, repository.find(name)?);
        eprintln!("measuring {head} against {other}");
        let folder = tempfile::Builder::new()
            .prefix("sendoff-against-")
            .tempdir()
            .context("could not create a scratch folder in the system's temporary folder")?;
        let target = Target::open()?;
        let ours = Program {
            path: target.build(&root, &head, &folder.path().join("ours"))?,
            revision: head,
        };
        // Asked before the other is built, which takes minutes.
        child::run_quietly(Command::new(&ours.path).args(selection).arg("--parts"))?;
        let checkout = Checkout::create(&repository, &other, folder.path().join("tree"))?;
        let theirs = Program {
            path: target.build(checkout.path(), &other, &folder.path().join("theirs"))?,
            revision: other,
        };
        Ok(Self {
            ours,
            theirs,
            _folder: folder,
        })
    }

    /// Our program, told where the other is.
    pub(super) fn command(&self) -> Result<Command> {
        let mut command = Command::new(&self.ours.path);
        nested::prepare(&mut command)?;
        command.arg("--against").arg(&self.theirs.path);
        for (option, program) in [("--ours", &self.ours), ("--theirs", &self.theirs)] {
            command.arg(option).arg(program.revision.to_string());
        }
        Ok(command)
    }
}
