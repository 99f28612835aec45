//! The list of all cases, and how they are run.

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Failed;

use super::need::Need;
use super::scene::Scene;
use super::{Setup, SinkHarness};
use crate::trials::{Files, conclude, on_a_runtime, trials};

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

const ALL: Files<Case> = &[
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
        trials(name, &harness, ALL, |case| case.name, run_case)
    });
    conclude(trials)
}

fn run_case(harness: &Arc<dyn SinkHarness>, case: &'static Case) -> Result<(), Failed> {
    on_a_runtime(TOO_LONG, async {
        let capabilities = harness.capabilities();
        let missing = case.need.filter(|need| !need.is_met_by(capabilities));
        let private = case.need == Some(Need::Restart) && missing.is_none();
        let scene = Scene::new(harness.fresh(Setup { private }).await?, capabilities).await;
        match missing {
            Some(need) => need.is_really_missing(scene).await,
            None => (case.run)(scene).await,
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_cases_share_a_name() {
        crate::trials::check_names(ALL, |case| case.name, 25);
    }
}
