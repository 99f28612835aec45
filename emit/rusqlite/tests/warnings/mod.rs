//! The log of one test.

use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;

/// What was logged since it was last taken.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<String>>);

impl Lines {
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Collects the log of this thread for as long as the guard lives.
pub(crate) fn collect() -> (Lines, DefaultGuard) {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    (lines, tracing::subscriber::set_default(log.finish()))
}
