//! `cargo xtask tidy`: the conventions that the compiler cannot check. Each rule is a file; each is also a test.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use members::Members;
use tree::Tree;

mod clock;
mod direction;
mod drivers;
mod events;
mod forbid_unsafe;
mod invariants;
mod leftovers;
mod length;
mod machine;
mod members;
mod reserved;
mod sql_names;
mod tree;
mod words;

/// Prints every violation and fails when there is one.
pub(crate) fn run() -> Result<ExitCode> {
    let violations = violations(&crate::nested::root()?)?;
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        println!("tidy");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} violations; CONTRIBUTING.md explains the rules", violations.len());
    Ok(ExitCode::FAILURE)
}

/// What breaks a rule in the checkout at `root`, one line each.
pub(crate) fn violations(root: &Path) -> Result<Vec<String>> {
    let members = Members::read(root)?;
    let tree = Tree::read(root)?;
    Ok([
        direction::check(&members),
        drivers::check(&members),
        sql_names::check(&tree),
        reserved::check(&tree),
        length::check(&tree),
        machine::check(&tree),
        clock::check(&tree),
        forbid_unsafe::check(&tree),
        leftovers::check(&tree),
        events::check(&tree),
        invariants::check(&tree),
        words::check(&tree),
    ]
    .concat())
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_checkout_is_tidy() {
        let root = crate::nested::root().unwrap();
        let violations = super::violations(&root).unwrap();
        assert!(violations.is_empty(), "\n{}", violations.join("\n"));
    }
}
