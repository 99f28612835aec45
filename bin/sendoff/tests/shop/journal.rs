//! The notes of a worker's tasks.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

/// The lines of a file that grows. Each is read once.
pub(crate) struct Journal {
    path: PathBuf,
    read: u64,
    lines: Vec<Value>,
}

impl Journal {
    pub(crate) fn new(path: PathBuf) -> Self {
        let lines = Vec::new();
        Self { path, read: 0, lines }
    }

    /// All lines so far; the last one only when it is complete.
    pub(crate) fn lines(&mut self) -> &[Value] {
        if let Ok(mut file) = File::open(&self.path) {
            let mut text = String::new();
            file.seek(SeekFrom::Start(self.read)).unwrap();
            file.read_to_string(&mut text).unwrap();
            let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
            self.read += whole.len() as u64;
            self.lines
                .extend(whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        }
        &self.lines
    }
}
