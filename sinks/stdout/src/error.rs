//! What an error of standard output means: never anything about one message, always that the sink is down.

use std::io;

use sendoff::Outcome;

pub(crate) fn outcome(error: &io::Error) -> Outcome {
    let text = match error.kind() {
        io::ErrorKind::BrokenPipe => {
            "nobody reads standard output any more (start the relay again together with its reader)".to_owned()
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk that standard output goes to is full (make room there)".to_owned()
        }
        _ => format!("standard output cannot be written: {error} (check where the relay's output goes to)"),
    };
    Outcome::SinkDown(text.into())
}
