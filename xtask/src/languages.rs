//! Python and Node.js with their PostgreSQL drivers, for the snippets in the docs, and Celery, for its workers. Kept in the
//! cache folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{child, nested};

/// The versions of Celery that workers are tested with: the oldest and the newest that is supported.
/// Each with the kombu of its time, which is the part that talks to the broker, and with what that reads Zstandard with.
const CELERIES: [(&str, &str, &str, &str); 2] = [
    ("SENDOFF_TEST_CELERY_OLD", "5.3.6", "5.3.7", "zstandard"),
    ("SENDOFF_TEST_CELERY_NEW", "5.7.0", "5.7.0", "backports.zstd"),
];

/// A Django project with django-celery-outbox, whose tables `sendoff celery-relay` serves, and both its database drivers.
const DJANGO: [&str; 6] = [
    "django-celery-outbox==0.4.3",
    "django>=5.2,<6.0",
    "celery[redis]==5.7.0",
    "kombu==5.7.0",
    "psycopg[binary]",
    "pymysql",
];

/// Where the interpreters find their drivers.
pub(crate) struct Languages {
    python: PathBuf,
    node_modules: PathBuf,
    /// The interpreters that have a Celery, by the variable that names each.
    celeries: Vec<(&'static str, PathBuf)>,
    django: PathBuf,
}

impl Languages {
    /// Installs the drivers unless they are there.
    pub(crate) fn install() -> Result<Self> {
        let root = nested::languages()?;
        let (venv, node) = (root.join("python"), root.join("node"));
        let languages = Self {
            python: venv.join("bin/python"),
            node_modules: node.join("node_modules"),
            celeries: CELERIES
                .iter()
                .map(|(variable, version, kombu, zstd)| Ok((*variable, celery(&root, version, kombu, zstd)?)))
                .collect::<Result<_>>()?,
            django: django(&root)?,
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
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let mut variables: Vec<(&'static str, OsString)> = vec![
            ("SENDOFF_TEST_PYTHON", self.python.clone().into()),
            ("SENDOFF_TEST_NODE_PATH", self.node_modules.clone().into()),
            ("SENDOFF_TEST_DJANGO", self.django.clone().into()),
        ];
        let celeries = self.celeries.iter();
        variables.extend(celeries.map(|(variable, python)| (*variable, python.clone().into())));
        variables
    }
}

/// The interpreter of an environment with this version of Celery, which is made unless it is there.
fn celery(root: &Path, version: &str, kombu: &str, zstd: &str) -> Result<PathBuf> {
    let venv = root.join(format!("celery-{version}"));
    let python = venv.join("bin/python");
    let versions = format!("(celery.__version__, kombu.__version__) == ({version:?}, {kombu:?})");
    let check = format!("import celery, kombu, redis, {zstd}, yaml; assert {versions}");
    if child::run_quietly(Command::new(&python).args(["-c", &check])).is_err() {
        eprintln!("installing Celery {version}, whose workers run in tests");
        child::run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let wanted = [
            format!("celery[redis,yaml]=={version}"),
            format!("kombu=={kombu}"),
            zstd.to_owned(),
        ];
        child::run_quietly(Command::new(&python).args(pip).args(wanted))?;
    }
    Ok(python)
}

/// The interpreter of an environment with Django and its outbox, which is made unless it is there.
fn django(root: &Path) -> Result<PathBuf> {
    let venv = root.join("django");
    let python = venv.join("bin/python");
    let check = "import django, psycopg, pymysql, redis; from importlib.metadata import version; \
                 assert version('django-celery-outbox') == '0.4.3' and version('celery') == '5.7.0'";
    if child::run_quietly(Command::new(&python).args(["-c", check])).is_err() {
        eprintln!("installing Django with django-celery-outbox, whose tables are relayed in tests");
        child::run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        child::run_quietly(Command::new(&python).args(pip).args(DJANGO))?;
    }
    Ok(python)
}
