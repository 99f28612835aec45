//! Bugs on purpose: the simulator finds each of them, and soon.

use std::collections::BTreeMap;

use sendoff_relay::planted::{Planted, plant};
use sendoff_testkit::simulator::Rule;

use super::simulate;

#[test]
fn explore() {
    let most = super::number("SENDOFF_MOST").unwrap_or(300);
    let only = std::env::var("SENDOFF_BUG").ok();
    for bug in Planted::ALL {
        if only.as_ref().is_some_and(|only| *only != format!("{bug:?}")) {
            continue;
        }
        plant(Some(bug));
        let mut first = None;
        let mut rules: BTreeMap<Rule, u32> = BTreeMap::new();
        let mut seeds = 0;
        for seed in 0..most {
            seeds += 1;
            if let Some(violation) = simulate(seed, false).violation {
                first.get_or_insert((seed, violation.to_string()));
                *rules.entry(violation.rule).or_default() += 1;
                if rules.values().sum::<u32>() >= 5 {
                    break;
                }
            }
        }
        plant(None);
        println!("{bug:?}: {first:?} {rules:?} in {seeds}");
    }
}
