//! Transactions that stay open, and servers that are replaced, step by step.

use super::*;

/// Lets the floor pass over what is open.
const PATIENTLY: [Step; 8] = [
    Step::Read,
    Step::Read,
    Step::Wait { millis: 300 },
    Step::Read,
    Step::Read,
    Step::Wait { millis: 300 },
    Step::Read,
    Step::Read,
];

fn emit(key: u8, count: usize) -> Vec<Step> {
    // The newest open transaction is the last in the list: usize::MAX picks none in particular, so it is the only one.
    vec![
        Step::Begin,
        Step::Insert { slot: 0, key, count },
        Step::End { slot: 0, commit: true },
    ]
}

#[test]
fn a_message_held_open_for_long_comes_before_what_followed_its_commit() {
    let mut simulation = Simulation::new();
    simulation.play(&[
        Step::Begin,
        Step::Insert {
            slot: 0,
            key: 1,
            count: 1,
        },
    ]);
    let slow = simulation.open[0];
    simulation.open.clear();
    simulation.play(&emit(0, 5));
    simulation.play(&PATIENTLY);
    assert!(
        simulation.progress.floors.floor() >= 6,
        "the floor does not wait for the slow one"
    );
    simulation.server.end(slow, true);
    simulation.play(&emit(1, 1));
    let before = simulation.questions;
    simulation.play(&[Step::Read]);
    assert_eq!(
        simulation.questions - before,
        2,
        "the read was thrown away and made again"
    );
    assert!(simulation.server.messages[0].came && simulation.server.messages[6].came);
    simulation.finish();
}

#[test]
fn a_rolled_back_transaction_costs_one_more_read_and_holds_nothing_up() {
    let mut simulation = Simulation::new();
    simulation.play(&[
        Step::Begin,
        Step::Insert {
            slot: 0,
            key: 1,
            count: 1,
        },
    ]);
    let slow = simulation.open[0];
    simulation.open.clear();
    simulation.play(&emit(0, 5));
    simulation.play(&PATIENTLY);
    simulation.server.end(slow, false);
    let before = simulation.questions;
    simulation.play(&[Step::Read, Step::Read]);
    assert_eq!(simulation.questions - before, 3);
    simulation.finish();
}

#[test]
fn a_transaction_that_stays_open_costs_nothing_after_its_message_was_passed_over() {
    let mut simulation = Simulation::new();
    simulation.play(&[Step::Begin]);
    let idle = simulation.open[0];
    simulation.open.clear();
    for _ in 0..100 {
        simulation.play(&emit(0, 3));
        let before = simulation.questions;
        simulation.play(&[Step::Read, Step::Settle { count: 3 }, Step::Wait { millis: 90 }]);
        assert_eq!(simulation.questions - before, 1);
    }
    let behind = 300 - simulation.progress.floors.floor();
    assert!(behind <= 24, "the floor is {behind} behind");
    simulation.server.end(idle, true);
    simulation.finish();
}

#[test]
fn a_transaction_that_ends_is_read_from_where_it_began_not_from_where_an_older_one_did() {
    let mut simulation = Simulation::new();
    simulation.play(&emit(0, 5));
    simulation.play(&PATIENTLY);
    // One that stays open for ever, much traffic, and one that is open for a while.
    let old = simulation.server.begin();
    simulation.play(&emit(0, 50));
    simulation.play(&PATIENTLY);
    let young = simulation.server.begin();
    simulation.server.insert(young, 1);
    simulation.play(&emit(0, 5));
    simulation.play(&PATIENTLY);
    simulation.server.end(young, true);
    let mut attempt = simulation.progress.begin(simulation.now);
    let (plan, mark) = simulation.progress.plan(&attempt, LIMIT);
    let (sighting, _) = simulation.server.read(&plan, mark);
    assert_eq!(simulation.progress.weigh(&mut attempt, &sighting), Weighed::AskAgain);
    let (plan, _) = simulation.progress.plan(&attempt, LIMIT);
    assert_eq!(
        plan.starts,
        [55, 55],
        "what the old one may have written lies lower, and is not visible yet"
    );
    simulation.server.end(old, true);
    simulation.finish();
}

#[test]
fn a_server_that_was_replaced_is_read_from_the_beginning() {
    let mut simulation = Simulation::new();
    simulation.play(&emit(0, 20));
    simulation.play(&PATIENTLY);
    assert!(simulation.progress.floors.floor() >= 20);
    // The standby that took over had not got everything: its next numbers are lower, and some of them are in flight.
    simulation.server = Server::new();
    simulation.server.started += Duration::from_secs(1);
    simulation.server.life = 1;
    simulation.play(&emit(0, 3));
    simulation.play(&[Step::Read, Step::Read]);
    simulation.finish();
}

#[test]
fn numbers_that_were_set_back_are_read_from_the_beginning() {
    let mut simulation = Simulation::new();
    simulation.play(&emit(0, 20));
    simulation.play(&PATIENTLY);
    // The same server, whose table was truncated with its numbers.
    simulation.server.life = 1;
    simulation.server.messages.clear();
    simulation.play(&emit(0, 3));
    simulation.play(&[Step::Read, Step::Read]);
    simulation.finish();
}
