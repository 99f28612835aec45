//! `demo`.

use serde_json::Value;

use crate::sandbox::Sandbox;

#[track_caller]
fn count(proof: &Value, name: &str) -> u64 {
    proof[name].as_u64().unwrap_or_else(|| panic!("{name} in {proof}"))
}

#[test]
fn the_demo_ends_with_a_proof_that_holds() {
    let sandbox = Sandbox::sqlite();
    let ran = sandbox.ok(["demo", "--seconds", "2", "--json"]);
    let proof = ran.json();
    let names: Vec<&String> = proof.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 7, "{proof}");
    assert_eq!((count(&proof, "lost"), count(&proof, "phantom")), (0, 0));
    assert_eq!(
        count(&proof, "committed"),
        count(&proof, "delivered") + count(&proof, "waiting") + count(&proof, "dead")
    );
    assert!(count(&proof, "committed") > 100, "{proof}");
    assert!(count(&proof, "rolled_back") > 10, "{proof}");
    assert!(count(&proof, "dead") > 0, "{proof}");
    assert!(ran.err.contains("1 s") && ran.err.contains("delivered"), "{ran:?}");
}

#[test]
fn the_demo_tells_the_proof_and_what_to_do_next() {
    let ran = Sandbox::sqlite().ok(["demo", "--seconds", "1", "--rate", "50"]);
    for word in [
        "✓",
        "committed",
        "phantom",
        "sendoff init",
        "sendoff migrate",
        "sendoff relay",
    ] {
        assert!(ran.out.contains(word), "{word} in {ran:?}");
    }
    assert!(!ran.out.contains('✗') && !ran.out.contains('\x1b'), "{ran:?}");
}

#[test]
fn relays_that_are_killed_lose_nothing_and_keep_the_order_of_customers() {
    // Fast enough that hundreds of a customer's messages are blocked behind a failed one: the proof checks their order.
    let ran = Sandbox::sqlite().ok(["demo", "--seconds", "6", "--rate", "1000", "--json"]);
    let proof = ran.json();
    assert_eq!((count(&proof, "lost"), count(&proof, "phantom")), (0, 0), "{ran:?}");
    assert!(count(&proof, "delivered") > 1000, "{ran:?}");
    assert!(ran.err.contains("relays killed 1"), "{ran:?}");
}

#[test]
fn the_database_of_a_demo_can_be_kept_and_looked_at() {
    let sandbox = Sandbox::sqlite();
    let ran = sandbox.ok(["demo", "--seconds", "2", "--keep", "shop.db", "--json"]);
    let dead = count(&ran.json(), "dead");
    let list = sandbox.json(&["dead", "ls", "--database", "sqlite:shop.db", "--limit", "1000"]);
    assert_eq!(list["items"].as_array().unwrap().len() as u64, dead);
    sandbox
        .run(["demo", "--keep", "shop.db"])
        .fails_with_reason(2, &["already exists"]);
}

#[test]
fn an_interrupt_ends_the_demo_with_its_proof() {
    let sandbox = Sandbox::sqlite();
    let mut command = sandbox.command(["demo", "--seconds", "600", "--json"]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut running = crate::sandbox::Running::start(&mut command);
    let mut err = std::io::BufReader::new(running.0.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut err, &mut line).unwrap();
    assert!(line.contains("committed"), "{line}");
    running.signal(rustix::process::Signal::INT);
    let mut out = String::new();
    std::io::Read::read_to_string(running.0.stdout.as_mut().unwrap(), &mut out).unwrap();
    assert!(running.end(std::time::Duration::from_secs(30)).success());
    let proof: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((count(&proof, "lost"), count(&proof, "phantom")), (0, 0), "{proof}");
}
