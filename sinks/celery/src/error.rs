//! The errors of encoding. All of them are permanent: the same task fails in the same way for ever.

use sendoff::{Error, ErrorKind};

/// Something about the stored task cannot be used. `why` never quotes an argument.
pub(crate) fn invalid(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, what).because(why).next_step(next)
}

/// An option of the stored task has a value that it cannot have.
pub(crate) fn bad_option(name: &str, expected: &str) -> Error {
    invalid(
        format!("the option {name:?} of the task cannot be used"),
        format!("it is not {expected}"),
        "store it as the documentation of tasks says, or leave it out",
    )
}
