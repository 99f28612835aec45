//! A disk that fills up in the middle of a batch: a separate process with a limit on file sizes.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};
use sendoff::{Outcome, Sink};
use sendoff_sink_file::{FileConfig, FileSink};

mod message;
use message::message;

const CHILD: &str = "SENDOFF_TEST_FILE_CHILD";

fn main() -> ExitCode {
    if let Some(path) = std::env::var_os(CHILD) {
        fill_up(Path::new(&path));
        return ExitCode::SUCCESS;
    }
    let trial = Trial::test("batch_that_does_not_fit_leaves_nothing_behind", || {
        batch_that_does_not_fit_leaves_nothing_behind();
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

fn batch_that_does_not_fit_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    // With the signal ignored, a write beyond the limit is truncated and the next one fails, as on a full disk.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\""])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, folder.path().join("events.jsonl"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::main(flavor = "current_thread")]
async fn fill_up(path: &Path) {
    let sink = FileSink::new(FileConfig::new(path)).unwrap();
    assert_eq!(
        sink.publish(&[message("first", "{}".into())]).await,
        [Outcome::Delivered]
    );
    let before = fs::read(path).unwrap();
    // Small enough that the first chunk is written: a later one reaches the limit.
    let large: Vec<_> = (0..30)
        .map(|_| message("large", format!("{:?}", "x".repeat(100_000))))
        .collect();
    for _ in 0..2 {
        for outcome in sink.publish(&large).await {
            assert!(
                matches!(&outcome, Outcome::SinkDown(reason) if reason.text().contains("rotate_bytes")),
                "{outcome:?}"
            );
        }
        assert!(fs::read(path).unwrap() == before, "a part of the batch is left");
    }
    assert_eq!(
        sink.publish(&[message("last", "{}".into())]).await,
        [Outcome::Delivered]
    );
    let after = fs::read_to_string(path).unwrap();
    assert_eq!(after.lines().count(), 2);
    assert!(after.lines().last().unwrap().contains(r#""topic":"last""#));
}
