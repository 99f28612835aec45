//! Exit codes, and how an error is printed.

use std::error::Error as StdError;
use std::io::{self, Write};
use std::process::ExitCode;

use sendoff::{Error, ErrorKind};
use serde_json::json;

use crate::output::{Paint, printable};

/// Exit codes. Scripts rely on the numbers; `docs/cli.md` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Ok = 0,
    /// A failure that has no other code.
    Failure = 1,
    /// The command line or the configuration is invalid.
    Usage = 2,
    /// The database cannot be reached.
    Unreachable = 3,
    /// The outbox's tables are missing, too old or too new.
    Schema = 4,
    /// The requested item does not exist.
    NotFound = 5,
    /// The database or the operating system denied access.
    Denied = 6,
    /// `sendoff status`: somebody should look at it.
    Warning = 7,
    /// `sendoff status`: messages do not flow.
    Critical = 8,
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
            // All other kinds share one code; the enum is non-exhaustive.
            _ => Self::Failure,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error to print.
    Error(Box<Error>),
    /// The reader closed our output, as `head` does. This is not an error, and nothing is printed.
    OutputClosed,
}

/// The result of every command.
pub(crate) type Done = Result<Exit, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(Box::new(error))
    }
}

/// A bare I/O error is always about standard output: all other I/O gets its own error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Error::new(ErrorKind::Backend, "cannot write to standard output")
            .because(error.to_string())
            .next_step("check where standard output goes")
            .with_source(error)
            .into()
    }
}

/// Prints a failure to standard error: what, why and next on one line each, then its causes if `with_sources` is set; or all of
/// it as one line of JSON.
pub(crate) fn conclude(done: Done, paint: Paint, with_sources: bool, json: bool) -> Exit {
    match done {
        Ok(exit) => exit,
        Err(Failure::OutputClosed) => Exit::Ok,
        Err(Failure::Error(error)) => {
            let text = if json {
                as_json(error.what(), error.why(), error.next())
            } else {
                told(&error, paint, with_sources)
            };
            // If standard error cannot be written, it cannot be reported.
            let _ = io::stderr().lock().write_all(text.as_bytes());
            error.kind().into()
        }
    }
}

/// Prints what is wrong with the command line, or the help that it asks for.
pub(crate) fn refuse(error: &clap::Error, json: bool) -> ExitCode {
    if json && error.use_stderr() {
        let text = error.render().to_string();
        let (what, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
        let what = what.strip_prefix("error: ").unwrap_or(what);
        let next = Some(rest.trim()).filter(|rest| !rest.is_empty());
        let _ = io::stderr().lock().write_all(as_json(what, None, next).as_bytes());
    } else {
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8))
}

fn as_json(what: &str, why: Option<&str>, next: Option<&str>) -> String {
    format!("{}\n", json!({"error": {"what": what, "why": why, "next": next}}))
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
    fn an_error_as_json_has_what_why_and_next() {
        assert_eq!(
            as_json("cannot", Some("refused"), None),
            "{\"error\":{\"next\":null,\"what\":\"cannot\",\"why\":\"refused\"}}\n"
        );
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let done: Done = Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        assert_eq!(conclude(done, Paint::plain(), false, false), Exit::Ok);
    }

    #[test]
    fn kinds_have_their_numbers() {
        assert_eq!(Exit::from(ErrorKind::Invalid) as u8, 2);
        assert_eq!(Exit::from(ErrorKind::SchemaTooNew) as u8, 4);
        assert_eq!(Exit::from(ErrorKind::Backend) as u8, 1);
    }
}
