//! Ten thousand simulations, and what they are worth: each is the same every time.
//!
//! `SENDOFF_SEED=123 cargo nextest run -p sendoff-testkit --test simulator --no-capture replay` repeats one and tells
//! everything that happens in it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "in a test that is how it fails, and what it tells"
)]

mod planted;

use sendoff_testkit::simulator::{Plan, Report, Simulator};

thread_local! {
    static SIMULATOR: Simulator = Simulator::new().unwrap();
}

fn simulate(seed: u64, logged: bool) -> Report {
    simulate_plan(Plan::of(seed), logged)
}

/// On a runtime of its own, in paused time.
fn simulate_plan(plan: Plan, logged: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    SIMULATOR.with(|simulator| runtime.block_on(simulator.run(plan, logged)))
}

/// Seeds that break a rule as things are: see "What is open" in docs/reliability.md. They are told, and do not fail.
const OPEN: &[u64] = &[];

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: {text:?} is no number")))
}

/// A thousand seeds; `SENDOFF_SEED_FROM` moves all of them on, to look further.
fn a_thousand(thousand: u64) {
    let first = number("SENDOFF_SEED_FROM").unwrap_or(0) + thousand * 1000;
    let (mut broken, mut messages, mut publications, mut seconds) = (Vec::new(), 0, 0, 0);
    for seed in first..first + 1000 {
        let report = simulate(seed, false);
        if report.violation.is_some() {
            println!("{report}");
            if !OPEN.contains(&seed) {
                broken.push(seed);
            }
        }
        messages += report.messages;
        publications += report.publications;
        seconds += report.took / 1000;
    }
    println!("{messages} messages, handed over {publications} times, in {seconds} seconds of 1000 simulations");
    assert!(broken.is_empty(), "replay with SENDOFF_SEED: {broken:?}");
}

macro_rules! thousands {
    ($($name:ident: $thousand:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            a_thousand($thousand);
        })*
    };
}

thousands! {
    seeds_0000_to_0999_keep_all_rules: 0,
    seeds_1000_to_1999_keep_all_rules: 1,
    seeds_2000_to_2999_keep_all_rules: 2,
    seeds_3000_to_3999_keep_all_rules: 3,
    seeds_4000_to_4999_keep_all_rules: 4,
    seeds_5000_to_5999_keep_all_rules: 5,
    seeds_6000_to_6999_keep_all_rules: 6,
    seeds_7000_to_7999_keep_all_rules: 7,
    seeds_8000_to_8999_keep_all_rules: 8,
    seeds_9000_to_9999_keep_all_rules: 9,
}

#[test]
fn a_seed_is_the_same_simulation_every_time() {
    for seed in 0..60 {
        let (first, second) = (simulate(seed, true), simulate(seed, true));
        assert!(first.log.len() > 50, "seed {seed}: {} lines", first.log.len());
        let differs = first.log.iter().zip(&second.log).position(|(one, other)| one != other);
        if let Some(at) = differs {
            panic!("seed {seed}, line {at}:\n{}\n{}", first.log[at], second.log[at]);
        }
        assert_eq!(first.log.len(), second.log.len(), "seed {seed}");
    }
}

/// The seed of `SENDOFF_SEED`, or any.
#[test]
fn replay() {
    let report = simulate(number("SENDOFF_SEED").unwrap_or(0), true);
    println!("{report}");
    assert!(report.log.len() > 50);
    if let Some(violation) = &report.violation {
        panic!("{violation}");
    }
}
