//! Rotation: `path.1` is the file before `path`, `path.2` the one before that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Moves `path` to `path.1`, and the older files up by one; the oldest of `keep` is deleted.
///
/// `path` itself is moved last: until then every process that opens it gets the file that the caller has locked, so
/// only one process rotates at a time. A crash in between leaves a gap in the numbers, which the next rotation fills.
pub(crate) fn rotate(path: &Path, keep: u32) -> io::Result<()> {
    let mut free = keep;
    for number in 1..keep {
        if !fs::exists(numbered(path, number))? {
            free = number;
            break;
        }
    }
    for number in (1..free).rev() {
        fs::rename(numbered(path, number), numbered(path, number + 1))?;
    }
    fs::rename(path, numbered(path, 1))
}

/// Synchronises the folder: if a power failure loses a file's name, the file is lost, too.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        // Other systems have no call for this, and keep names safe themselves.
        return Ok(());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::File::open(folder)?.sync_all()
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(folder: &Path) -> Vec<(String, String)> {
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (
                    entry.file_name().into_string().unwrap(),
                    fs::read_to_string(entry.path()).unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    }

    fn pair(name: &str, text: &str) -> (String, String) {
        (name.to_owned(), text.to_owned())
    }

    #[test]
    fn the_oldest_goes_when_there_are_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for text in ["a", "b", "c", "d"] {
            fs::write(&path, text).unwrap();
            rotate(&path, 3).unwrap();
        }
        assert_eq!(
            listed(folder.path()),
            [pair("log.1", "d"), pair("log.2", "c"), pair("log.3", "b")]
        );
    }

    #[test]
    fn a_number_that_a_crash_left_out_is_filled_before_anything_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for (file, text) in [
            (path.clone(), "d"),
            (numbered(&path, 1), "c"),
            (numbered(&path, 3), "a"),
        ] {
            fs::write(file, text).unwrap();
        }
        rotate(&path, 3).unwrap();
        assert_eq!(
            listed(folder.path()),
            [pair("log.1", "d"), pair("log.2", "c"), pair("log.3", "a")]
        );
    }

    #[test]
    fn one_older_file_can_be_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for text in ["a", "b"] {
            fs::write(&path, text).unwrap();
            rotate(&path, 1).unwrap();
        }
        assert_eq!(listed(folder.path()), [pair("log.1", "b")]);
    }
}
