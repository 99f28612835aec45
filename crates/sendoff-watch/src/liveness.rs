//! A file that is touched while the relay works.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// The shortest time between two touches.
const PAUSE: Duration = Duration::from_millis(500);

/// Touches the file at health reports of the relay, at most at the interval above.
pub(crate) async fn keep_touching(path: PathBuf, mut relay_healths: watch::Receiver<Option<Instant>>) {
    let mut complained = false;
    while relay_healths.changed().await.is_ok() {
        let file = path.clone();
        // A disk that hangs must block nothing else.
        let touched = tokio::task::spawn_blocking(move || touch(&file)).await;
        match touched {
            Ok(Err(error)) if !complained => {
                complained = true;
                let path = path.display();
                tracing::error!(event = "liveness_failed", %path, %error, "cannot touch the liveness file");
            }
            Ok(Ok(())) => complained = false,
            Ok(Err(_)) | Err(_) => {}
        }
        sleep(PAUSE).await;
    }
}

fn touch(path: &Path) -> io::Result<()> {
    let file = File::options().create(true).append(true).open(path)?;
    file.set_modified(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_makes_a_file_and_keeps_it_young() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alive");
        touch(&path).unwrap();
        let old = SystemTime::now() - Duration::from_secs(1000);
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .set_modified(old)
            .unwrap();
        touch(&path).unwrap();
        let age = path
            .metadata()
            .unwrap()
            .modified()
            .unwrap()
            .elapsed()
            .unwrap_or_default();
        assert!(age < Duration::from_secs(100), "{age:?}");
    }
}
