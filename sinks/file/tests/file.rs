//! Real files: their content after batches, rotations, crashes and accidents.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sendoff::{ErrorKind, Outcome, Outgoing, Sink};
use sendoff_sink_file::{FileConfig, FileSink};
use tempfile::TempDir;

mod message;
use message::message;

fn batch(topics: impl IntoIterator<Item = impl ToString>) -> Vec<Arc<Outgoing>> {
    topics
        .into_iter()
        .map(|topic| message(&topic.to_string(), "{}".into()))
        .collect()
}

fn topics_in(path: &Path) -> Vec<String> {
    let topic = |line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["topic"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    fs::read_to_string(path).unwrap().lines().map(topic).collect()
}

/// The file and its older files, oldest first.
fn all_files(path: &Path) -> Vec<PathBuf> {
    let older = |number: &u32| PathBuf::from(format!("{}.{number}", path.display()));
    let mut files: Vec<_> = (1..)
        .map(|number| older(&number))
        .take_while(|file| file.exists())
        .collect();
    files.reverse();
    files.push(path.to_owned());
    files
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    (folder, path)
}

fn sink(path: &Path) -> FileSink {
    FileSink::new(FileConfig::new(path)).unwrap()
}

async fn is_down(sink: &FileSink, word: &str) {
    let outcomes = sink.publish(&batch(["x", "y"])).await;
    assert_eq!(outcomes.len(), 2);
    for outcome in outcomes {
        assert!(
            matches!(&outcome, Outcome::SinkDown(reason) if reason.text().contains(word)),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn batches_are_appended_in_their_order_also_after_a_restart() {
    let (_folder, path) = place();
    for fsync in [true, false] {
        let config = FileConfig {
            fsync,
            ..FileConfig::new(&path)
        };
        let sink = FileSink::new(config).unwrap();
        assert_eq!(sink.publish(&batch([1, 2, 3])).await, vec![Outcome::Delivered; 3]);
        assert_eq!(sink.publish(&[]).await, []);
        assert_eq!(sink.publish(&batch([4])).await, [Outcome::Delivered]);
        sink.close().await;
        assert_eq!(sink.publish(&batch([5])).await, [Outcome::Delivered]);
    }
    assert_eq!(topics_in(&path), ["1", "2", "3", "4", "5", "1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn rotation_keeps_everything_in_order() {
    let (_folder, path) = place();
    let config = FileConfig {
        rotate_bytes: Some(2000),
        keep: 1000,
        ..FileConfig::new(&path)
    };
    let mut next = 0..;
    for restart in 0..3 {
        let sink = FileSink::new(config.clone()).unwrap();
        for size in (1..=7).cycle().take(30) {
            let outcomes = sink.publish(&batch(next.by_ref().take(size))).await;
            assert_eq!(outcomes, vec![Outcome::Delivered; size], "{restart}");
        }
    }
    let files = all_files(&path);
    assert!(files.len() > 20, "{}", files.len());
    let topics: Vec<_> = files.iter().flat_map(|file| topics_in(file)).collect();
    let expected: Vec<_> = (0..next.next().unwrap())
        .map(|number: u32| number.to_string())
        .collect();
    assert_eq!(topics, expected);
    for file in &files[..files.len() - 1] {
        let len = fs::metadata(file).unwrap().len();
        assert!((2000..2000 + 7 * 300).contains(&len), "{len}");
    }
}

#[tokio::test]
async fn only_so_many_older_files_are_kept() {
    let (folder, path) = place();
    let config = FileConfig {
        rotate_bytes: Some(1),
        keep: 2,
        ..FileConfig::new(&path)
    };
    let sink = FileSink::new(config).unwrap();
    for number in 0..6 {
        assert_eq!(sink.publish(&batch([number])).await, [Outcome::Delivered]);
    }
    let topics: Vec<_> = all_files(&path).iter().flat_map(|file| topics_in(file)).collect();
    assert_eq!(topics, ["3", "4", "5"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[tokio::test]
async fn a_line_that_a_crash_cut_short_is_removed() {
    let (_folder, path) = place();
    assert_eq!(
        sink(&path).publish(&batch(["a", "b"])).await,
        vec![Outcome::Delivered; 2]
    );
    let whole = fs::read(&path).unwrap();
    let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in [second + 1, second + 50, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(sink(&path).publish(&batch(["c"])).await, [Outcome::Delivered]);
        assert_eq!(topics_in(&path), ["a", "c"], "{cut}");
    }
}

#[tokio::test]
async fn what_another_program_left_without_a_line_break_is_kept() {
    let (_folder, path) = place();
    fs::write(&path, "not ours").unwrap();
    assert_eq!(sink(&path).publish(&batch(["a"])).await, [Outcome::Delivered]);
    assert!(fs::read_to_string(&path).unwrap().starts_with("not ours\n{"));
}

#[tokio::test]
async fn a_piece_that_another_process_left_while_this_one_runs_is_removed() {
    let (_folder, path) = place();
    let sink = sink(&path);
    assert_eq!(sink.publish(&batch(["a"])).await, [Outcome::Delivered]);
    let mut text = fs::read(&path).unwrap();
    text.extend_from_slice(b"{\"id\":\"0198");
    fs::write(&path, text).unwrap();
    assert_eq!(sink.publish(&batch(["b"])).await, [Outcome::Delivered]);
    assert_eq!(topics_in(&path), ["a", "b"]);
}

#[tokio::test]
async fn several_relays_share_a_file_and_its_rotation() {
    let (_folder, path) = place();
    let config = FileConfig {
        fsync: false,
        rotate_bytes: Some(5000),
        keep: 10_000,
        ..FileConfig::new(&path)
    };
    let relays = ["a", "b", "c"].map(|relay| {
        let sink = FileSink::new(config.clone()).unwrap();
        tokio::spawn(async move {
            for at in (0..300).step_by(5) {
                let outcomes = sink.publish(&batch((at..at + 5).map(|n| format!("{relay}-{n}")))).await;
                assert_eq!(outcomes, vec![Outcome::Delivered; 5]);
            }
        })
    });
    for relay in relays {
        relay.await.unwrap();
    }
    let files = all_files(&path);
    assert!(files.len() > 10, "{}", files.len());
    let topics: Vec<_> = files.iter().flat_map(|file| topics_in(file)).collect();
    for relay in ["a", "b", "c"] {
        let of_relay: Vec<_> = topics
            .iter()
            .filter(|topic| topic.starts_with(relay))
            .cloned()
            .collect();
        let expected: Vec<_> = (0..300).map(|n| format!("{relay}-{n}")).collect();
        assert_eq!(of_relay, expected);
    }
}

#[tokio::test]
async fn a_file_that_was_moved_or_deleted_is_created_again() {
    let (folder, path) = place();
    let sink = sink(&path);
    assert_eq!(sink.publish(&batch(["a"])).await, [Outcome::Delivered]);
    let moved = folder.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    assert_eq!(sink.publish(&batch(["b"])).await, [Outcome::Delivered]);
    fs::remove_file(&path).unwrap();
    assert_eq!(sink.publish(&batch(["c"])).await, [Outcome::Delivered]);
    assert_eq!(
        (topics_in(&moved), topics_in(&path)),
        (vec!["a".into()], vec!["c".into()])
    );
}

#[tokio::test]
async fn rotation_moves_the_file_behind_a_link() {
    let (folder, path) = place();
    let link = folder.path().join("link");
    fs::write(&path, "").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let config = FileConfig {
        rotate_bytes: Some(1),
        ..FileConfig::new(&link)
    };
    let sink = FileSink::new(config).unwrap();
    for topic in ["a", "b"] {
        assert_eq!(sink.publish(&batch([topic])).await, [Outcome::Delivered]);
    }
    let topics: Vec<_> = all_files(&path).iter().flat_map(|file| topics_in(file)).collect();
    assert_eq!(
        (topics, topics_in(&link)),
        (vec!["a".into(), "b".into()], vec!["b".into()])
    );
}

#[tokio::test]
async fn a_full_device_is_a_sink_that_is_down() {
    let sink = sink(Path::new("/dev/full"));
    is_down(&sink, "make room").await;
    is_down(&sink, "make room").await;
}

#[tokio::test]
async fn a_folder_that_is_missing_is_told_and_found_once_it_is_there() {
    let (folder, _) = place();
    let path = folder.path().join("later/events.jsonl");
    let sink = sink(&path);
    is_down(&sink, "create the folder").await;
    let error = sink.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    fs::create_dir(path.parent().unwrap()).unwrap();
    sink.check().await.unwrap();
    assert_eq!(sink.publish(&batch(["a"])).await, [Outcome::Delivered]);
    assert_eq!(topics_in(&path), ["a"]);
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    let (folder, path) = place();
    is_down(&sink(folder.path()), "set `path` of the sink to a regular file").await;
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    is_down(&sink(&path), "set `path` of the sink to a regular file").await;
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let good = FileConfig::new("events.jsonl");
    for (bad, word) in [
        (FileConfig::new(""), "path"),
        (FileConfig::new("/"), "path"),
        (
            FileConfig {
                rotate_bytes: Some(0),
                ..good.clone()
            },
            "rotate_bytes",
        ),
        (FileConfig { keep: 0, ..good }, "keep"),
    ] {
        let error = FileSink::new(bad).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(word) && error.next().is_some(), "{error}");
    }
}
