//! The broker of the tests that speaks Kafka: no package of Debian has one, so it is built once, into the cache.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{child, nested};

const VERSION: &str = "0.6.0";

/// Names the program to the tests, and to us: one that is there already is used.
pub(crate) const VARIABLE: &str = "SENDOFF_TEST_KAFKA_SERVER";

/// The program, which is built unless it is there. A broker that cannot be had fails the run: no test is skipped.
pub(crate) fn install_missing() -> Result<PathBuf> {
    let home = nested::tools()?.join(format!("tansu-{VERSION}"));
    let program = find(env::var_os(VARIABLE), &home)?;
    if !program.is_file() {
        build(&home)?;
    }
    Ok(program)
}

/// Where the program is, or will be.
fn find(named: Option<OsString>, home: &Path) -> Result<PathBuf> {
    match named.map(PathBuf::from) {
        Some(named) if named.is_file() => Ok(named),
        Some(named) => bail!(
            "{VARIABLE} is {}, and there is no such file: correct it, or unset it",
            named.display()
        ),
        None => Ok(home.join("bin/tansu")),
    }
}

fn build(home: &Path) -> Result<()> {
    eprintln!(
        "the Kafka broker tansu {VERSION} was not found: building it once into {} (ten minutes or more)",
        home.display()
    );
    let folder = home.join("build");
    let version = format!("={VERSION}");
    // It keeps its records in SQLite; the rest of what it can do would only be compiled.
    let what = ["install", "tansu", "--version", &version, "--locked"];
    let how = ["--no-default-features", "--features", "libsql", "--root"];
    let mut install = nested::cargo()?;
    install.args(what).args(how).arg(home).arg("--target-dir").arg(&folder);
    // Quick to build, and quick enough.
    install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    install.env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    if !child::run(&mut install)?.success() {
        bail!(
            "tansu could not be built (see above), and a test against a missing broker is never skipped: mend it and run \
             this again, which goes on where it ended, or build it elsewhere (cargo install tansu --version {version} \
             --locked --no-default-features --features libsql) and name the program in {VARIABLE}"
        );
    }
    // Gigabytes that nobody needs again.
    fs::remove_dir_all(&folder).with_context(|| format!("could not remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_is_named_is_used_and_one_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("tansu");
        assert!(
            find(Some(named.clone().into()), folder.path())
                .unwrap_err()
                .to_string()
                .contains(VARIABLE)
        );
        fs::write(&named, "").unwrap();
        assert_eq!(find(Some(named.clone().into()), folder.path()).unwrap(), named);
        assert_eq!(find(None, folder.path()).unwrap(), folder.path().join("bin/tansu"));
    }
}
