//! The steps of a run: a heading and a duration each, and one closing line for all.

use std::process::{ExitCode, ExitStatus};
use std::time::Instant;

use anyhow::Result;

use super::counts::Counts;
use crate::interrupt;

/// How one step ended.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) broken: bool,
}

impl Outcome {
    /// The outcome of a program that counts nothing.
    pub(crate) fn of(status: ExitStatus) -> Self {
        Self {
            counts: Counts::default(),
            broken: !status.success(),
        }
    }
}

/// What the steps so far came to.
#[derive(Default)]
pub(crate) struct Report {
    counts: Counts,
    failed_steps: Vec<String>,
}

impl Report {
    /// Runs one step. Only an interrupt ends the run; any other error is that step's failure.
    pub(crate) fn step(&mut self, heading: &str, work: impl FnOnce() -> Result<Outcome>) -> Result<()> {
        println!("\n== {heading}");
        let start = Instant::now();
        let outcome = work();
        interrupt::check()?;
        let seconds = start.elapsed().as_secs_f64();
        let outcome = outcome.unwrap_or_else(|error| {
            eprintln!("{error:#}");
            Outcome {
                broken: true,
                ..Outcome::default()
            }
        });
        let verdict = if self.add(heading, &outcome) { "ok" } else { "FAILED" };
        println!("== {heading}: {verdict} in {seconds:.1} s");
        Ok(())
    }

    /// Prints the closing line. A run in which nothing ran is a failure: it proves nothing.
    pub(crate) fn conclude(&self) -> ExitCode {
        println!();
        if !self.failed_steps.is_empty() {
            println!("failed: {}", self.failed_steps.join(", "));
        } else if !self.succeeded() {
            println!("no test ran: does the filter select any?");
        }
        println!("{} passed, {} failed", self.counts.passed, self.counts.failed);
        if self.succeeded() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn add(&mut self, heading: &str, outcome: &Outcome) -> bool {
        self.counts += outcome.counts;
        let holds = !outcome.broken && outcome.counts.failed == 0;
        if !holds {
            self.failed_steps.push(heading.to_owned());
        }
        // A step that breaks before it can count, such as a compile error, must not leave "0 failed" behind.
        if outcome.broken && outcome.counts.failed == 0 {
            self.counts.failed += 1;
        }
        holds
    }

    fn succeeded(&self) -> bool {
        self.failed_steps.is_empty() && self.counts.passed > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(passed: u64, failed: u64, broken: bool) -> Outcome {
        Outcome {
            counts: Counts { passed, failed },
            broken,
        }
    }

    #[test]
    fn run_without_any_test_does_not_succeed() {
        let mut report = Report::default();
        assert!(report.add("tests", &ran(0, 0, false)));
        assert!(!report.succeeded());
    }

    #[test]
    fn broken_step_counts_as_one_failure() {
        let mut report = Report::default();
        report.add("tests", &ran(3, 0, false));
        report.add("clippy", &ran(0, 0, true));
        assert_eq!(report.counts, Counts { passed: 3, failed: 1 });
        assert!(!report.succeeded());
    }

    #[test]
    fn failed_tests_are_counted_once() {
        let mut report = Report::default();
        report.add("tests", &ran(3, 2, true));
        assert_eq!(report.counts, Counts { passed: 3, failed: 2 });
    }

    #[test]
    fn run_in_which_all_passed_succeeds() {
        let mut report = Report::default();
        report.add("format", &ran(0, 0, false));
        report.add("tests", &ran(3, 0, false));
        assert!(report.succeeded());
    }
}
