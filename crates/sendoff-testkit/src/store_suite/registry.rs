//! The list of all cases, and how they are run.

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Failed;

use super::need::Need;
use super::scene::Scene;
use super::{Setup, StoreHarness};
use crate::trials::{Files, conclude, on_a_runtime, trials};

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

const ALL: Files<Case> = &[
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
        trials(name, &harness, ALL, |case| case.name, run_case)
    });
    conclude(trials)
}

fn run_case(harness: &Arc<dyn StoreHarness>, case: &'static Case) -> Result<(), Failed> {
    on_a_runtime(TOO_LONG, async {
        let missing = case.need.filter(|need| !need.is_met_by(harness.capabilities()));
        let setup = if missing.is_some() { Setup::PLAIN } else { case.setup };
        let scene = Scene::new(harness.fresh(setup).await?, harness.capabilities());
        let database = scene.subject.database.clone();
        match missing {
            Some(need) => need.is_answered_unsupported(scene).await,
            None => (case.run)(scene).await?,
        }
        database.discard().await;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_cases_share_a_name() {
        crate::trials::check_names(ALL, |case| case.name, 90);
    }
}
