//! All that can happen to a few messages of one key, searched without a gap.
//!
//! A small world has one dispatcher, tables that settle by the real plan, and one or two sinks. The search follows every step
//! that may come next from every state, in all orders: commits, reads that are under way while verdicts are written, answers
//! of all kinds, settlements that are refused or whose answer is lost, rows that become due, lost leases, lanes that are given
//! back, pauses, and operators. Along the way a world checks that one message of the key is with a sink at a time, and that
//! none is sent before those in front of it are confirmed, or need not be waited for. At the end the search checks that from
//! every state there is a way on which everything is delivered: nothing is stuck.

mod store;
mod world;

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use world::{Answer, Setup, Step, World};

const SINKS: [&str; 2] = ["a", "b"];

/// A world with more states is no small one.
const MOST_STATES: usize = 300_000;

/// How a state was found first: from which one, by which step.
type Origin = Option<(usize, Step)>;

/// The states that were found, or what went wrong, with the steps that lead there.
fn search(setup: &'static Setup) -> Result<usize, String> {
    let first = World::new(setup);
    let mut known = HashMap::from([(first.fingerprint(), 0)]);
    let mut origins: Vec<Origin> = vec![None];
    let mut before: Vec<Vec<u32>> = vec![Vec::new()];
    let mut done = Vec::new();
    let mut open = VecDeque::from([(0, first)]);
    while let Some((at, world)) = open.pop_front() {
        assert!(origins.len() < MOST_STATES, "the world is too large to be searched");
        if world.is_done() {
            done.push(at);
        }
        for step in world.steps() {
            let mut next = world.clone();
            let taken = catch_unwind(AssertUnwindSafe(|| next.take(step)));
            if let Err(panic) = taken {
                let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                return Err(format!("{why}\n{:?} {step:?}", way_to(&origins, at)));
            }
            let id = *known.entry(next.fingerprint()).or_insert_with(|| {
                origins.push(Some((at, step)));
                before.push(Vec::new());
                open.push_back((origins.len() - 1, next));
                origins.len() - 1
            });
            before[id].push(at as u32);
        }
    }
    let mut ends = vec![false; origins.len()];
    while let Some(at) = done.pop() {
        if !std::mem::replace(&mut ends[at], true) {
            done.extend(before[at].iter().map(|from| *from as usize));
        }
    }
    match ends.iter().position(|ends| !ends) {
        Some(stuck) => Err(format!("stuck after {:?}", way_to(&origins, stuck))),
        None => Ok(origins.len()),
    }
}

fn way_to(origins: &[Origin], mut at: usize) -> Vec<Step> {
    let mut way = Vec::new();
    while let Some((from, step)) = origins[at] {
        way.push(step);
        at = from;
    }
    way.reverse();
    way
}

use Answer::{Delivered, NotSent, NotYet, Permanent, Temporary, Unknown};

/// Three messages, of which some fail.
const THREE: Setup = Setup {
    on_failure: OnFailure::Block,
    sinks: &["a"],
    for_last: &[false, false, false],
    answers: &[Delivered, Temporary],
    refusals: false,
    lost_leases: false,
    given_back: false,
    pauses: false,
};

const TWO: Setup = Setup {
    for_last: &[false, false],
    ..THREE
};

const ALL_ANSWERS: Setup = Setup {
    answers: &[Delivered, Temporary, Permanent, Unknown, NotYet, NotSent],
    ..TWO
};

const REFUSED: Setup = Setup {
    refusals: true,
    lost_leases: true,
    ..TWO
};

const PAUSED: Setup = Setup {
    pauses: true,
    lost_leases: true,
    ..TWO
};

const GIVEN_BACK: Setup = Setup {
    answers: &[Delivered, Temporary, NotSent],
    given_back: true,
    ..TWO
};

const SKIPPED: Setup = Setup {
    on_failure: OnFailure::Skip,
    answers: &[Delivered, Permanent, Temporary],
    refusals: true,
    ..TWO
};

/// The first message goes to one sink, the second to both.
const TWO_SINKS: Setup = Setup {
    sinks: &["a", "b"],
    for_last: &[true, false],
    lost_leases: true,
    ..TWO
};

const TWO_SINKS_GIVEN_BACK: Setup = Setup {
    lost_leases: false,
    given_back: true,
    ..TWO_SINKS
};

fn assert_holds(setup: &'static Setup) {
    match search(setup) {
        Ok(states) => println!("{states} states of {setup:?}"),
        Err(why) => panic!("{why}\n{setup:?}"),
    }
}

#[test]
fn three_messages() {
    assert_holds(&THREE);
}

#[test]
fn two_messages_and_all_answers() {
    assert_holds(&ALL_ANSWERS);
}

#[test]
fn two_messages_whose_results_are_refused() {
    assert_holds(&REFUSED);
}

#[test]
fn two_messages_of_a_paused_topic() {
    assert_holds(&PAUSED);
}

#[test]
fn two_messages_of_a_lane_that_is_given_back() {
    assert_holds(&GIVEN_BACK);
}

#[test]
fn two_messages_of_a_topic_that_skips() {
    assert_holds(&SKIPPED);
}

#[test]
fn two_messages_at_two_sinks() {
    assert_holds(&TWO_SINKS);
}

#[test]
fn two_messages_at_two_sinks_of_a_lane_that_is_given_back() {
    assert_holds(&TWO_SINKS_GIVEN_BACK);
}

/// The bug is found.
fn assert_finds(bug: crate::planted::Planted, setup: &'static Setup, how: &str) {
    crate::planted::plant(Some(bug));
    let found = search(setup);
    crate::planted::plant(None);
    let why = found.expect_err("the search finds nothing");
    assert!(why.contains(how), "{why}");
}

#[test]
fn planted_bugs_of_the_order_are_found() {
    use crate::planted::Planted::{FollowersGo, FreedTooEarly, NotReadAgain, OvertakesHead, PutDownOvertaken};
    assert_finds(OvertakesHead, &THREE, "overtakes");
    assert_finds(FollowersGo, &THREE, "overtakes");
    assert_finds(FreedTooEarly, &THREE, "overtakes");
    assert_finds(NotReadAgain, &GIVEN_BACK, "overtakes");
    assert_finds(PutDownOvertaken, &TWO_SINKS_GIVEN_BACK, "overtakes");
}
