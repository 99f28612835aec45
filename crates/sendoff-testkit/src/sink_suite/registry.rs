//! The list of all cases, and how they are run.

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};

use super::need::Need;
use super::scene::Scene;
use super::{Setup, SinkHarness};

/// One case.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) need: Option<Need>,
    pub(super) run: fn(Scene) -> Pin<Box<dyn Future<Output = ()>>>,
}

/// Lists cases: `name`, or `name needs Restart`.
macro_rules! cases {
    ($($name:ident $(needs $need:ident)?),* $(,)?) => {
        pub(super) const CASES: &[$crate::sink_suite::registry::Case] = &[$(
            $crate::sink_suite::registry::Case {
                name: stringify!($name),
                need: cases!(@need $($need)?),
                run: |scene| Box::pin($name(scene)),
            }
        ),*];
    };
    (@need) => { None };
    (@need $need:ident) => { Some($crate::sink_suite::need::Need::$need) };
}
pub(super) use cases;

const ALL: &[(&str, &[Case])] = &[
    ("content", super::content::CASES),
    ("confirm", super::confirm::CASES),
    ("cut", super::cut::CASES),
    ("refuse", super::refuse::CASES),
    ("excess", super::excess::CASES),
    ("overlap", super::overlap::CASES),
    ("down", super::down::CASES),
    ("relay", super::relay::CASES),
    ("close", super::close::CASES),
    ("secrets", super::secrets::CASES),
];

/// No case takes as long as this, so one that does hangs.
const TOO_LONG: Duration = Duration::from_secs(120);

/// Runs the suite on each of these, as the command line asks: a `main` of its own. Names of cases start with the name
/// given here.
pub fn run<H: SinkHarness>(harnesses: impl IntoIterator<Item = (&'static str, H)>) -> ExitCode {
    let trials = harnesses.into_iter().flat_map(|(name, harness)| {
        let harness: Arc<dyn SinkHarness> = Arc::new(harness);
        trials(name, &harness)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn trials(prefix: &str, harness: &Arc<dyn SinkHarness>) -> Vec<Trial> {
    let cases = ALL
        .iter()
        .flat_map(|(file, cases)| cases.iter().map(move |case| (file, case)));
    cases
        .map(|(file, case)| {
            let harness = harness.clone();
            Trial::test(format!("{prefix}::{file}::{}", case.name), move || {
                run_case(&harness, case)
            })
        })
        .collect()
}

fn run_case(harness: &Arc<dyn SinkHarness>, case: &'static Case) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let case = async {
            let capabilities = harness.capabilities();
            let missing = case.need.filter(|need| !need.is_met_by(capabilities));
            let private = case.need == Some(Need::Restart) && missing.is_none();
            let scene = Scene::new(harness.fresh(Setup { private }).await?, capabilities).await;
            match missing {
                Some(need) => need.is_really_missing(scene).await,
                None => (case.run)(scene).await,
            }
            Ok::<(), sendoff::Error>(())
        };
        tokio::time::timeout(TOO_LONG, case).await
    });
    // What a case has left running must not keep the process.
    runtime.shutdown_background();
    match done {
        Err(_) => Err(format!("the case was not over after {TOO_LONG:?}").into()),
        Ok(Err(error)) => Err(format!("{error}\n{error:#?}").into()),
        Ok(Ok(())) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_cases_share_a_name() {
        let names: Vec<String> = ALL
            .iter()
            .flat_map(|(file, cases)| cases.iter().map(move |case| format!("{file}::{}", case.name)))
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert!(names.len() > 25, "only {} cases", names.len());
    }
}
