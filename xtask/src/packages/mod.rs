//! What the tests need from Debian: one table, one row a package.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};

use crate::child;

/// A Debian package and a file that proves it is installed.
pub(crate) struct Package {
    /// The name that `apt-get install` takes.
    pub(crate) name: &'static str,
    /// Where the file is; `*` stands for one whole path segment, and the highest match wins.
    proof: &'static str,
}

pub(crate) const POSTGRESQL: Package = Package {
    name: "postgresql",
    proof: "/usr/lib/postgresql/*/bin/postgres",
};
pub(crate) const PGBOUNCER: Package = Package {
    name: "pgbouncer",
    proof: "/usr/sbin/pgbouncer",
};
pub(crate) const MARIADB: Package = Package {
    name: "mariadb-server",
    proof: "/usr/sbin/mariadbd",
};
pub(crate) const FAKETIME: Package = Package {
    name: "faketime",
    proof: "/usr/lib/*/faketime/libfaketime.so.1",
};
pub(crate) const RABBITMQ: Package = Package {
    name: "rabbitmq-server",
    proof: "/usr/lib/rabbitmq/bin/rabbitmq-server",
};
const REDIS: Package = Package {
    name: "redis-server",
    proof: "/usr/bin/redis-server",
};
const NATS: Package = Package {
    name: "nats-server",
    proof: "/usr/sbin/nats-server",
};
const MOSQUITTO: Package = Package {
    name: "mosquitto",
    proof: "/usr/sbin/mosquitto",
};
/// Kafka's client encrypts with OpenSSL, and is compiled with the tests.
const OPENSSL: Package = Package {
    name: "libssl-dev",
    proof: "/usr/include/openssl/ssl.h",
};
/// Finds OpenSSL for those who compile with it.
const PKG_CONFIG: Package = Package {
    name: "pkg-config",
    proof: "/usr/bin/pkg-config",
};
const PYTHON_VENV: Package = Package {
    name: "python3-venv",
    proof: "/usr/lib/*/ensurepip/__init__.py",
};
const NODE: Package = Package {
    name: "nodejs",
    proof: "/usr/bin/node",
};
const NPM: Package = Package {
    name: "npm",
    proof: "/usr/bin/npm",
};

/// Everything that `cargo xtask test` installs when it is missing.
const NEEDED: &[Package] = &[
    POSTGRESQL,
    PGBOUNCER,
    MARIADB,
    FAKETIME,
    PYTHON_VENV,
    NODE,
    NPM,
    RABBITMQ,
    REDIS,
    NATS,
    MOSQUITTO,
    OPENSSL,
    PKG_CONFIG,
];

impl Package {
    /// The newest installed file that matches the proof.
    pub(crate) fn file(&self) -> Result<PathBuf> {
        newest(self.proof).with_context(|| {
            format!(
                "{} is not there, so the Debian package {} is missing: apt-get install it",
                self.proof, self.name
            )
        })
    }
}

/// The programs that tests start by themselves, with the variables that name them: not every account has them on its path.
pub(crate) fn programs() -> Result<Vec<(&'static str, OsString)>> {
    [
        ("SENDOFF_TEST_REDIS_SERVER", REDIS),
        ("SENDOFF_TEST_NATS_SERVER", NATS),
        ("SENDOFF_TEST_MOSQUITTO", MOSQUITTO),
    ]
    .into_iter()
    .map(|(variable, package)| Ok((variable, package.file()?.into())))
    .collect()
}

/// Installs what is missing. A backend that cannot be installed fails the run: it is never skipped.
pub(crate) fn install_missing() -> Result<()> {
    let missing: Vec<_> = NEEDED
        .iter()
        .filter(|package| newest(package.proof).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|package| package.name).collect();
    let wanted = names.join(" ");
    eprintln!("installing from Debian packages: {wanted}");
    let mut install = as_root();
    install
        .args(["sh", "-c", include_str!("install.sh"), "install"])
        .args(&names);
    let failed = match child::run(&mut install) {
        Ok(status) if status.success() => None,
        Ok(status) => Some(anyhow!("the installer ended with {status}")),
        Err(error) => Some(error),
    };
    if let Some(error) = failed {
        return Err(error.context(format!(
            "could not install {wanted}, and a test against a missing server is never skipped: run as root, or allow \
             `sudo -n`, or install it yourself (apt-get install {wanted})"
        )));
    }
    missing.iter().try_for_each(|package| package.file().map(drop))
}

/// A command prefix that has root's rights: empty (`env`) for root, `sudo -n` for everybody else.
fn as_root() -> Command {
    if rustix::process::geteuid().is_root() {
        Command::new("env")
    } else {
        let mut sudo = Command::new("sudo");
        // Never ask for a password: a run without a terminal would hang on the question.
        sudo.arg("-n");
        sudo
    }
}

fn newest(pattern: &str) -> Option<PathBuf> {
    matches(Path::new("/"), pattern.trim_start_matches('/'))
        .into_iter()
        .max_by_key(|path| version_in(path))
}

fn matches(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let (segment, rest) = pattern
        .split_once('/')
        .map_or((pattern, None), |(head, tail)| (head, Some(tail)));
    let candidates: Vec<PathBuf> = if segment == "*" {
        std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect()
    } else {
        vec![folder.join(segment)]
    };
    let existing = candidates.into_iter().filter(|path| path.exists());
    match rest {
        None => existing.collect(),
        Some(rest) => existing.flat_map(|path| matches(&path, rest)).collect(),
    }
}

/// The numeric segments of a path, so that PostgreSQL 15 is newer than 9.6 or 9.
fn version_in(path: &Path) -> Vec<u32> {
    path.iter()
        .filter_map(|segment| segment.to_str()?.split('.').next()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_version_wins_by_number_not_by_letter() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9.6", "15", "8"] {
            std::fs::create_dir_all(root.path().join(version).join("bin")).unwrap();
        }
        let pattern = format!("{}/*/bin", root.path().display());
        assert_eq!(newest(&pattern), Some(root.path().join("15/bin")));
    }

    #[test]
    fn missing_file_names_the_package_to_install() {
        let package = Package {
            name: "no-such-server",
            proof: "/no/such/*/server",
        };
        let error = package.file().unwrap_err().to_string();
        assert!(error.contains("no-such-server"), "{error}");
    }
}
