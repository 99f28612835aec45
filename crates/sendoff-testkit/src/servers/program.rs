//! Where the servers' programs are.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The program of a server: where the variable says, or on the path, or where Debian keeps servers.
pub(super) fn find(variable: &str, name: &str) -> PathBuf {
    if let Some(named) = std::env::var_os(variable) {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/bin")])
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("{name} is not installed: run the tests with `cargo xtask test`, which installs it"))
}

/// A folder for one server, which goes with it.
pub(super) fn folder(server: &str) -> TempDir {
    let root = std::env::var_os("SENDOFF_TEST_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::Builder::new()
        .prefix(&format!("{server}-"))
        .tempdir_in(&root)
        .unwrap_or_else(|error| panic!("no folder in {} for {server}: {error}", root.display()))
}

/// Writes a configuration file.
pub(super) fn write(path: &Path, lines: impl IntoIterator<Item = String>) {
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    std::fs::write(path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
