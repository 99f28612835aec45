//! Errors of encoding. All of them are permanent: the same task always fails the same way.

use sendoff::{Error, ErrorKind};

/// A part of the stored task cannot be used. `why` never quotes an argument.
pub(crate) fn invalid(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, what).because(why).next_step(next)
}

/// An option of the stored task has an invalid value.
pub(crate) fn bad_option(name: &str, expected: &str) -> Error {
    invalid(
        format!("the option {name:?} of the task is invalid"),
        format!("it is not {expected}"),
        "emit the task with a valid value, or without the option",
    )
}
