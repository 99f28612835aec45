//! Tests put canaries into payloads and secrets. In what they and the programs that they start print, there must be none.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::report::Outcome;

/// In two pieces, so that this file does not hold it.
const CANARY: &str = concat!("canary", "-6f1d");

/// Looks through everything that the tests of the last run have printed.
pub(crate) fn check(root: &Path) -> Result<Outcome> {
    // Reports are kept with the checkout, wherever compiled code goes.
    let path = root.join("target/nextest/default/junit.xml");
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "{} is missing: nextest writes it, as .config/nextest.toml says",
            path.display()
        )
    })?;
    match tests_that_print_it(&text).as_slice() {
        [] => Ok(Outcome::default()),
        tests => bail!("a payload or a secret was printed by:\n{}", tests.join("\n")),
    }
}

fn tests_that_print_it(report: &str) -> Vec<&str> {
    let cases = report.split("<testcase ").skip(1);
    cases
        .filter(|case| case.contains(CANARY))
        .map(|case| case.split('>').next().unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_in_the_output_of_a_test_is_found_with_its_name() {
        let report = format!(
            "<testsuites><testcase name=\"a\"><system-out>fine</system-out></testcase>\n\
             <testcase name=\"b\"><system-err>the key is {CANARY}-secret</system-err></testcase></testsuites>"
        );
        assert_eq!(tests_that_print_it(&report), ["name=\"b\""]);
    }

    #[test]
    fn a_run_without_a_report_is_no_clean_run() {
        let empty = tempfile::tempdir().unwrap();
        assert!(check(empty.path()).is_err());
    }
}
