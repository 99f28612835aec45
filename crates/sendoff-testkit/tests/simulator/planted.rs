//! Bugs on purpose: the simulator finds each of them, and soon.

use sendoff_relay::planted::{Planted, plant};
use sendoff_testkit::simulator::{Operation, Plan, Rule, Step, Temper};

use super::{OPEN, simulate_plan};

/// How many simulations it may take. Most bugs are found by one of the first ten.
const MOST: usize = 4000;

/// Simulates what a seed plans, if that may bring the bug out, until one of these rules is broken.
fn finds(bug: Planted, among: fn(&Plan) -> bool, rules: &[Rule]) {
    plant(Some(bug));
    // What is broken without the bug proves nothing.
    let plans = (0..).filter(|seed| !OPEN.contains(seed)).map(Plan::of).filter(among);
    let found = plans.take(MOST).enumerate().find_map(|(at, plan)| {
        // A relay refuses less than two crashes, but for this bug: two would take longer than a simulation.
        let crash_limit = if bug == Planted::LeaseLostIsCrash {
            1
        } else {
            plan.crash_limit
        };
        let report = simulate_plan(Plan { crash_limit, ..plan }, false);
        Some((at + 1, report.plan.seed, report.violation?))
    });
    plant(None);
    let (simulations, seed, violation) = found.unwrap_or_else(|| panic!("{bug:?} was not found in {MOST} simulations"));
    println!("{bug:?}: seed {seed}, {simulations} simulations, {violation}");
    assert!(rules.contains(&violation.rule), "{bug:?} showed as {violation}");
}

fn any(_: &Plan) -> bool {
    true
}

fn fails_over(plan: &Plan) -> bool {
    plan.relays > 1 && has(plan, |step| matches!(step, Step::FailOver))
}

fn fails_over_in_trouble(plan: &Plan) -> bool {
    plan.store_trouble > 0 && has(plan, |step| matches!(step, Step::FailOver))
}

/// Leases run out while messages are with sinks.
fn loses_leases(plan: &Plan) -> bool {
    let long = |step: &Step| matches!(step, Step::StoreDown(time) if time.as_secs() > 3);
    has(plan, long) && (plan.slow_sinks || plan.sink_trouble > 50)
}

/// Heartbeats are answered late while messages are with sinks.
fn gets_late_answers(plan: &Plan) -> bool {
    plan.store_trouble > 50 && (plan.slow_sinks || plan.sink_trouble > 50)
}

fn stops_while_sinks_are_slow(plan: &Plan) -> bool {
    (plan.slow_sinks || plan.sink_trouble > 50) && has(plan, |step| matches!(step, Step::Stop(..)))
}

fn has_poison(plan: &Plan) -> bool {
    has(
        plan,
        |step| matches!(step, Step::Emit(_, draft) if draft.temper() == Temper::Poison),
    )
}

fn pauses_topics(plan: &Plan) -> bool {
    plan.store_trouble > 0 && has(plan, |step| matches!(step, Step::Operate(Operation::PauseTopic(..))))
}

fn routes_differ(plan: &Plan) -> bool {
    plan.relays > 1 && plan.routes_differ
}

fn routes_differ_for_good(plan: &Plan) -> bool {
    plan.relays > 1 && plan.routes_stay
}

fn has(plan: &Plan, is: impl Fn(&Step) -> bool) -> bool {
    plan.steps.iter().any(|(_, step)| is(step))
}

macro_rules! bugs {
    ($($name:ident: $bug:ident, $among:ident, [$($rule:ident),*];)*) => {
        $(#[test]
        fn $name() {
            finds(Planted::$bug, $among, &[$(Rule::$rule),*]);
        })*

        #[test]
        fn every_planted_bug_has_its_test() {
            let tested = [$(Planted::$bug),*];
            let untested = Planted::ALL.iter().filter(|bug| !tested.contains(bug));
            assert_eq!(untested.collect::<Vec<_>>(), Vec::<&Planted>::new());
        }
    };
}

bugs! {
    finds_that_the_fence_was_dropped: FenceDropped, any, [Fenced];
    finds_that_rows_are_settled_by_their_number: SettlesByNumber, fails_over, [NothingLost, Order, StandsStill, Confirmed];
    finds_that_a_range_is_deleted: DeletesRange, any, [NothingLost, Order];
    finds_that_the_floor_does_not_lag: FloorDoesNotLag, any, [StandsStill, Order];
    finds_that_nobody_is_evicted: NeverEvicts, any, [StandsStill];
    finds_that_blocked_rows_are_never_unblocked: BlockedForEver, any, [StandsStill];
    finds_that_due_rows_are_read_twice: DueTwice, any, [SentAgain, OneAtATime];
    finds_that_leases_are_judged_by_another_clock: HostClock, any, [Evicted, OneAtATime];
    finds_that_dead_letters_do_not_block: DeadDoNotBlock, any, [Order];
    finds_that_one_crash_is_enough: OneCrashIsEnough, has_poison, [Cause];
    finds_that_another_history_goes_unnoticed: HistoryUnnoticed, fails_over, [StandsStill, Order];
    finds_that_a_lane_is_granted_twice: GrantedTwice, fails_over, [Survives, InFlight, StandsStill];
    finds_that_lanes_are_asked_for_while_others_go_back: AcquiresWhileReleasing, fails_over_in_trouble, [StandsStill];
    finds_that_unknown_outcomes_are_settled_as_delivered: SettlesUnconfirmed, any, [Confirmed, Order];
    finds_that_a_head_is_overtaken: OvertakesHead, any, [Order];
    finds_that_followers_go_on: FollowersGo, any, [Order];
    finds_that_a_key_is_freed_too_early: FreedTooEarly, any, [Order];
    finds_that_what_was_not_sent_is_not_read_again: NotReadAgain, gets_late_answers, [StandsStill, Order];
    finds_that_what_was_put_down_is_overtaken: PutDownOvertaken, stops_while_sinks_are_slow, [Order];
    finds_that_the_lease_is_not_looked_at: LeaseUnchecked, loses_leases, [Leased, OneAtATime];
    finds_that_lanes_are_left_too_early: LeavesTooEarly, any, [OneAtATime, SentAgain, Order];
    finds_that_a_lost_answer_leaves_lanes_to_nobody: LostAnswerForgotten, any, [StandsStill];
    finds_that_an_outage_costs_attempts: OutageCharged, any, [Charged, Cause];
    finds_that_failures_cost_no_attempts: NeverCharges, any, [StandsStill];
    finds_that_a_repeated_settlement_is_charged_twice: ChargedTwice, any, [Charged, Cause];
    finds_that_messages_are_dropped_at_a_stop: DroppedAtStop, any, [Confirmed];
    finds_that_a_pause_is_ignored: PauseIgnored, any, [Paused];
    finds_that_the_end_of_a_pause_goes_unseen: PauseEndsUnseen, pauses_topics, [StandsStill];
    finds_that_a_sink_is_never_probed: NeverProbes, any, [StandsStill];
    finds_that_a_lost_lease_counts_as_a_crash: LeaseLostIsCrash, loses_leases, [Cause];
    finds_that_one_relay_decides_that_there_is_no_route: OneRelayDecides, routes_differ, [Cause, NothingLost];
    finds_that_lanes_are_not_handed_over: NeverHandsOver, routes_differ_for_good, [StandsStill];
    finds_that_the_waiting_table_is_left_alone: RestsTooLong, any, [StandsStill];
}
