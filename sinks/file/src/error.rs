//! Errors of the file. They never concern a single message: the sink is down.

use std::io;
use std::path::{Path, PathBuf};

use sendoff::{Error, ErrorKind, Outcome};

/// A failed operation on a file.
#[derive(Debug)]
pub(crate) struct Failure {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl Failure {
    /// For `map_err`: the operation and the file.
    pub(crate) fn on(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { doing, path, source }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let (what, next) = (self.what(), self.next());
        Outcome::SinkDown(format!("{what}: {} ({next})", self.source).into())
    }

    fn what(&self) -> String {
        format!("{} {} failed", self.doing, self.path.display())
    }

    fn next(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::StorageFull => "make room on its disk; messages are deferred until then",
            io::ErrorKind::QuotaExceeded => "raise the disk quota of the relay's user, or make room",
            io::ErrorKind::FileTooLarge => {
                "set `rotate_bytes` of the sink, or raise the process's limit for file sizes (ulimit -f)"
            }
            io::ErrorKind::PermissionDenied => "allow the relay's user to write to the file and its folder",
            io::ErrorKind::ReadOnlyFilesystem => "mount its file system with write access",
            io::ErrorKind::NotFound => "create the folder",
            io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => "set `path` of the sink to a regular file",
            io::ErrorKind::WouldBlock => "stop the process that holds its lock, or use another file",
            _ => "check the disk and the path",
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let kind = match failure.source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => ErrorKind::Invalid,
            io::ErrorKind::WouldBlock => ErrorKind::Busy,
            _ => ErrorKind::Backend,
        };
        Self::new(kind, failure.what())
            .because(failure.source.to_string())
            .next_step(failure.next())
            .with_source(failure.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_why_and_next() {
        let denied = Failure::on("opening", Path::new("/a/b"))(io::ErrorKind::PermissionDenied.into());
        let Outcome::SinkDown(reason) = denied.outcome() else {
            panic!("the sink must be down");
        };
        assert_eq!(
            reason.text(),
            "opening /a/b failed: permission denied (allow the relay's user to write to the file and its folder)"
        );
        let error = Error::from(denied);
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Denied, reason.text())
        );
    }
}
