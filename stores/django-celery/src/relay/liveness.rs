//! Touches the liveness file.

use std::fs::File;
use std::path::Path;

/// Touches the file. That it cannot be is told, and is no reason to stop.
pub(super) fn touch(path: Option<&Path>) {
    let Some(path) = path else { return };
    let touched = File::options()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|file| set_modified(&file));
    if let Err(error) = touched {
        tracing::warn!(event = "liveness_file", path = %path.display(), %error, "cannot touch the liveness file");
    }
}

/// By writing nothing of interest: the time is then the file system's own, and no clock is read here.
fn set_modified(file: &File) -> std::io::Result<()> {
    file.set_len(0)?;
    std::io::Write::write_all(&mut &*file, b"\n")
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_file_is_made_and_its_time_moves_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alive");
        touch(Some(&path));
        let file = File::options().write(true).open(&path).unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        file.set_times(FileTimes::new().set_modified(old)).unwrap();
        touch(Some(&path));
        assert!(path.metadata().unwrap().modified().unwrap() > old);
        assert_eq!(path.metadata().unwrap().len(), 1);
        touch(None);
        touch(Some(&folder.path().join("no/such/folder")));
    }
}
