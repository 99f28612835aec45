//! The list of all cases, and how they are run.

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};

use super::need::Need;
use super::scene::Scene;
use super::{Setup, StoreHarness};

/// What a case returns: an error of the store that it did not expect fails it.
pub(super) type CaseResult = sendoff::Result<()>;

/// One case.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) need: Option<Need>,
    pub(super) setup: Setup,
    pub(super) run: fn(Scene) -> Pin<Box<dyn Future<Output = CaseResult>>>,
}

/// Lists cases: `name`, `name needs Sql`, `name with SETUP`, or both.
macro_rules! cases {
    ($($name:ident $(needs $need:ident)? $(with $setup:expr)?),* $(,)?) => {
        pub(super) const CASES: &[$crate::store_suite::registry::Case] = &[$(
            $crate::store_suite::registry::Case {
                name: stringify!($name),
                need: cases!(@need $($need)?),
                setup: cases!(@setup $($setup)?),
                run: |scene| Box::pin($name(scene)),
            }
        ),*];
    };
    (@need) => { None };
    (@need $need:ident) => { Some($crate::store_suite::need::Need::$need) };
    (@setup) => { $crate::store_suite::Setup::PLAIN };
    (@setup $setup:expr) => { $setup };
}
pub(super) use cases;

const ALL: &[(&str, &[Case])] = &[
    ("emit", super::emit::CASES),
    ("emit_content", super::emit_content::CASES),
    ("emit_once", super::emit_once::CASES),
    ("emit_again", super::emit_again::CASES),
    ("lease", super::lease::CASES),
    ("lease_crash", super::lease_crash::CASES),
    ("read", super::read::CASES),
    ("straggler", super::straggler::CASES),
    ("unreadable", super::unreadable::CASES),
    ("settle", super::settle::CASES),
    ("settle_fence", super::settle_fence::CASES),
    ("settle_repeated", super::settle_repeated::CASES),
    ("settle_twice", super::settle_twice::CASES),
    ("settle_verdict", super::settle_verdict::CASES),
    ("kept", super::kept::CASES),
    ("blocked", super::blocked::CASES),
    ("dead", super::dead::CASES),
    ("operate", super::operate::CASES),
    ("operate_act", super::operate_act::CASES),
    ("operate_counts", super::operate_counts::CASES),
    ("health", super::health::CASES),
    ("operate_filter", super::operate_filter::CASES),
    ("overview", super::overview::CASES),
    ("operate_key", super::operate_key::CASES),
    ("operate_list", super::operate_list::CASES),
    ("operate_pause", super::operate_pause::CASES),
    ("clean", super::clean::CASES),
    ("migrate", super::migrate::CASES),
    ("relay", super::relay::CASES),
    ("relay_order", super::relay_order::CASES),
    ("history", super::history::CASES),
    ("work", super::work::CASES),
    ("work_fence", super::work_fence::CASES),
    ("work_end", super::work_end::CASES),
    ("work_storm", super::work_storm::CASES),
];

/// No case takes as long as this, so one that does hangs.
const TOO_LONG: Duration = Duration::from_secs(60);

/// Runs the suite on each of these, as the command line asks: a `main` of its own. Names of cases start with the name
/// given here.
pub fn run<H: StoreHarness>(harnesses: impl IntoIterator<Item = (&'static str, H)>) -> ExitCode {
    let trials = harnesses.into_iter().flat_map(|(name, harness)| {
        let harness: Arc<dyn StoreHarness> = Arc::new(harness);
        trials(name, &harness)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn trials(prefix: &str, harness: &Arc<dyn StoreHarness>) -> Vec<Trial> {
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

fn run_case(harness: &Arc<dyn StoreHarness>, case: &'static Case) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let case = async {
            let missing = case.need.filter(|need| !need.is_met_by(harness.capabilities()));
            let setup = if missing.is_some() { Setup::PLAIN } else { case.setup };
            let scene = Scene::new(harness.fresh(setup).await?, harness.capabilities());
            let database = scene.subject.database.clone();
            match missing {
                Some(need) => need.is_answered_unsupported(scene).await,
                None => (case.run)(scene).await?,
            }
            database.discard().await;
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
        assert!(names.len() > 90, "only {} cases", names.len());
    }
}
