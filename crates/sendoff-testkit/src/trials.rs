//! Runs the cases of a suite as tests of a `main` of their own.

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};

/// The cases of a suite: files with their cases.
pub(crate) type Files<Case> = &'static [(&'static str, &'static [Case])];

/// Runs trials as the command line asks.
pub(crate) fn conclude(trials: impl Iterator<Item = Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// A trial for each case. `name` is the name of a case.
pub(crate) fn trials<Case: Sync, Harness: Clone + Send + 'static>(
    prefix: &str,
    harness: &Harness,
    files: Files<Case>,
    name: fn(&Case) -> &'static str,
    run: fn(&Harness, &'static Case) -> Result<(), Failed>,
) -> Vec<Trial> {
    let cases = files
        .iter()
        .flat_map(|(file, cases)| cases.iter().map(move |case| (file, case)));
    cases
        .map(|(file, case)| {
            let harness = harness.clone();
            Trial::test(format!("{prefix}::{file}::{}", name(case)), move || run(&harness, case))
        })
        .collect()
}

/// Runs a case on a runtime of its own. One that takes longer than `limit` hangs.
pub(crate) fn on_a_runtime(limit: Duration, case: impl Future<Output = sendoff::Result<()>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let done = runtime.block_on(async { tokio::time::timeout(limit, case).await });
    // What a case has left running must not keep the process.
    runtime.shutdown_background();
    match done {
        Err(_) => Err(format!("the case was not over after {limit:?}").into()),
        Ok(Err(error)) => Err(format!("{error}\n{error:#?}").into()),
        Ok(Ok(())) => Ok(()),
    }
}

/// Fails if two cases have one name, or if there are not more than `least`.
#[cfg(test)]
pub(crate) fn check_names<Case>(files: Files<Case>, name: fn(&Case) -> &'static str, least: usize) {
    let names: Vec<String> = files
        .iter()
        .flat_map(|(file, cases)| cases.iter().map(move |case| format!("{file}::{}", name(case))))
        .collect();
    let unique: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
    assert!(names.len() > least, "only {} cases", names.len());
}
