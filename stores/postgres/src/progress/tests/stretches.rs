//! Lanes that are read together.

use super::*;

/// One transaction with messages of both lanes in turn, then the reads that let the floor rise.
fn backlog(simulation: &mut Simulation, count: usize) {
    let xid = simulation.server.begin();
    for number in 0..count {
        simulation.server.insert(xid, u8::try_from(number % 2).unwrap());
    }
    simulation.server.end(xid, true);
    simulation.play(&[
        Step::Read,
        Step::Wait { millis: 100 },
        Step::Read,
        Step::Wait { millis: 100 },
        Step::Read,
        Step::Settle { count: usize::MAX },
    ]);
}

#[test]
fn lanes_with_backlogs_of_one_kind_are_read_together() {
    let mut simulation = Simulation::new();
    backlog(&mut simulation, 2000);
    let before = (simulation.questions, simulation.stretches);
    let read = [Step::Read, Step::Settle { count: usize::MAX }];
    for _ in 0..40 {
        simulation.play(&read);
    }
    let asked = (simulation.questions - before.0, simulation.stretches - before.1);
    assert!(
        asked.0 - asked.1 <= 2,
        "of {} questions {} were for stretches",
        asked.0,
        asked.1
    );
    let came = simulation.server.messages.iter().filter(|message| message.came).count();
    assert!(came >= 40 * LIMIT, "{came} came");
    simulation.finish();
}

#[test]
fn lane_with_far_more_than_the_others_does_not_hold_them_up() {
    let mut simulation = Simulation::new();
    backlog(&mut simulation, 300);
    assert!(simulation.progress.lanes.density.is_some(), "they are read together");
    // One key has very much to say, and a message of another lane comes last.
    let xid = simulation.server.begin();
    for _ in 0..3000 {
        simulation.server.insert(xid, 0);
    }
    simulation.server.insert(xid, 1);
    simulation.server.end(xid, true);
    let last = simulation.server.messages.len() - 1;
    for _ in 0..20 {
        simulation.play(&[
            Step::Read,
            Step::Settle { count: usize::MAX },
            Step::Wait { millis: 100 },
        ]);
    }
    assert!(
        simulation.server.messages[last].came,
        "it waits behind the other lane's"
    );
    simulation.finish();
}

/// Numbers that other relays' lanes have.
fn elsewhere(simulation: &mut Simulation, xid: usize, count: usize) {
    for _ in 0..count {
        simulation.server.insert(xid, 0);
        let message = simulation.server.messages.last_mut().unwrap();
        (message.settled, message.came, message.in_flight) = (true, true, true);
    }
}

#[test]
fn answer_that_may_lack_rows_of_a_stretch_is_not_used() {
    let mut simulation = Simulation::new();
    let xid = simulation.server.begin();
    for number in 0..400 {
        simulation.server.insert(xid, u8::try_from(number % 2).unwrap());
        elsewhere(&mut simulation, xid, 9);
    }
    for number in 0..400 {
        simulation.server.insert(xid, u8::try_from(number % 2).unwrap());
    }
    simulation.server.end(xid, true);
    for _ in 0..60 {
        simulation.play(&[
            Step::Read,
            Step::Settle { count: usize::MAX },
            Step::Wait { millis: 100 },
        ]);
    }
    assert!(simulation.stretches > 5);
    simulation.finish();
}

#[test]
fn stretch_without_any_row_is_not_taken_for_the_end() {
    let mut simulation = Simulation::new();
    let xid = simulation.server.begin();
    for gap in [0, 5000] {
        elsewhere(&mut simulation, xid, gap);
        for number in 0..400 {
            simulation.server.insert(xid, u8::try_from(number % 2).unwrap());
        }
    }
    simulation.server.end(xid, true);
    simulation.finish();
}
