//! The ways out: exit codes, and how an error is told.

use std::error::Error as StdError;
use std::io::{self, Write};
use std::process::ExitCode;

use sendoff::{Error, ErrorKind};

use crate::output::{Paint, printable};

/// How the program ends; the numbers are a promise to scripts, kept in `docs/cli.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done.
    Ok = 0,
    /// Something failed that none of the others names.
    Failure = 1,
    /// The command line or the configuration cannot be used.
    Usage = 2,
    /// The database cannot be reached.
    Unreachable = 3,
    /// The outbox's tables are missing, too old or too new.
    Schema = 4,
    /// What was asked for does not exist.
    NotFound = 5,
    /// The database or the system refused: missing rights.
    Denied = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Invalid => Self::Usage,
            ErrorKind::Unreachable => Self::Unreachable,
            ErrorKind::SchemaMissing | ErrorKind::SchemaTooOld | ErrorKind::SchemaTooNew => Self::Schema,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Denied => Self::Denied,
            // The rest has no number of its own; the enum may grow outside this crate.
            _ => Self::Failure,
        }
    }
}

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// To be told.
    Error(Box<Error>),
    /// Whoever read our output has enough, as `head` does: there is nothing to tell and nothing is wrong.
    OutputClosed,
}

/// What every command returns.
pub(crate) type Done = Result<Exit, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(Box::new(error))
    }
}

/// Only standard output is written to without a word of its own about errors, so an I/O error is about that.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Error::new(ErrorKind::Backend, "the output cannot be written")
            .because(error.to_string())
            .next_step("check where standard output goes to")
            .with_source(error)
            .into()
    }
}

/// Tells a failure on standard error, what, why and next each on a line, and its sources below if asked.
pub(crate) fn conclude(done: Done, paint: Paint, with_sources: bool) -> Exit {
    match done {
        Ok(exit) => exit,
        Err(Failure::OutputClosed) => Exit::Ok,
        Err(Failure::Error(error)) => {
            // Nobody is left to hear that standard error cannot be written.
            let _ = io::stderr()
                .lock()
                .write_all(told(&error, paint, with_sources).as_bytes());
            error.kind().into()
        }
    }
}

fn told(error: &Error, paint: Paint, with_sources: bool) -> String {
    let mut text = format!("{} {}\n", paint.bad("error:"), printable(error.what()));
    if let Some(why) = error.why() {
        text += &format!("{} {}\n", paint.bold("why:"), printable(why));
    }
    if let Some(next) = error.next() {
        text += &format!("{} {}\n", paint.bold("next:"), printable(next));
    }
    let mut source = error.source();
    while let Some(cause) = source.filter(|_| with_sources) {
        text += &format!("{} {}\n", paint.dim("caused by:"), printable(&cause.to_string()));
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_a_line_each_for_what_why_and_next() {
        let error = Error::new(ErrorKind::Unreachable, "cannot reach the database")
            .because("connection refused")
            .next_step("check that it runs")
            .with_source(io::Error::other("deep"));
        let plain = Paint::plain();
        assert_eq!(
            told(&error, plain, false),
            "error: cannot reach the database\nwhy: connection refused\nnext: check that it runs\n"
        );
        assert!(told(&error, plain, true).ends_with("caused by: deep\n"));
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let done: Done = Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        assert_eq!(conclude(done, Paint::plain(), false), Exit::Ok);
    }

    #[test]
    fn kinds_have_their_numbers() {
        assert_eq!(Exit::from(ErrorKind::Invalid) as u8, 2);
        assert_eq!(Exit::from(ErrorKind::SchemaTooNew) as u8, 4);
        assert_eq!(Exit::from(ErrorKind::Backend) as u8, 1);
    }
}
