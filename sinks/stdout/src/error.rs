//! Errors of standard output. They never concern a single message: the sink is down.

use std::io;

use sendoff::Outcome;

pub(crate) fn outcome(error: &io::Error) -> Outcome {
    let text = match error.kind() {
        io::ErrorKind::BrokenPipe => {
            "the reader of the relay's standard output has closed it (restart the relay together with its reader)"
                .to_owned()
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk of the relay's standard output is full (make room on it)".to_owned()
        }
        _ => format!("cannot write to standard output: {error} (check where the relay's output goes)"),
    };
    Outcome::SinkDown(text.into())
}
