//! Confirmation of commands that cannot be undone.

use std::io::{self, IsTerminal, Write};

/// Whether the user at the terminal confirms. Without a terminal there is no question, and this returns true.
pub(crate) fn confirmed(question: &str) -> io::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
