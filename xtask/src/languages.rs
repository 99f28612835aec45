//! Python and Node.js with their PostgreSQL drivers, for the snippets in the docs. Kept in the cache folder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{child, nested};

/// Where the interpreters find their drivers.
pub(crate) struct Languages {
    python: PathBuf,
    node_modules: PathBuf,
}

impl Languages {
    /// Installs the drivers unless they are there.
    pub(crate) fn install() -> Result<Self> {
        let root = nested::languages()?;
        let (venv, node) = (root.join("python"), root.join("node"));
        let languages = Self {
            python: venv.join("bin/python"),
            node_modules: node.join("node_modules"),
        };
        let has_psycopg = || child::run_quietly(Command::new(&languages.python).args(["-c", "import psycopg"])).is_ok();
        if !has_psycopg() {
            eprintln!("installing the Python driver that a snippet of the docs uses");
            child::run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
            let pip = [
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "psycopg[binary]",
            ];
            child::run_quietly(Command::new(&languages.python).args(pip))?;
        }
        if !languages.node_modules.join("pg/package.json").is_file() {
            eprintln!("installing the Node.js driver that a snippet of the docs uses");
            std::fs::create_dir_all(&node)?;
            let npm = ["install", "--silent", "--no-audit", "--no-fund", "--no-save", "pg"];
            child::run_quietly(
                Command::new("npm")
                    .args(npm)
                    .arg("--prefix")
                    .arg(&node)
                    .current_dir(&node),
            )?;
        }
        Ok(languages)
    }

    /// What the tests read to find them.
    pub(crate) fn variables(&self) -> [(&'static str, OsString); 2] {
        [
            ("SENDOFF_TEST_PYTHON", self.python.clone().into()),
            ("SENDOFF_TEST_NODE_PATH", self.node_modules.clone().into()),
        ]
    }
}
