//! The first program in docs/celery.md is the same as the example that is compiled and run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

const DOC: &str = include_str!("../../docs/celery.md");
const EXAMPLE: &str = include_str!("../examples/celery.rs");

#[test]
fn the_first_program_of_the_page_is_in_the_example() {
    let program = DOC.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let body = &program[program.find("let outbox").unwrap()..];
    let wanted = body.lines().map(str::trim).filter(|line| line.ends_with(';'));
    let wanted: Vec<&str> = wanted.collect();
    assert!(wanted.len() > 5, "{wanted:?}");
    // The page has longer lines.
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    let example = dense(EXAMPLE);
    for line in wanted {
        assert!(example.contains(&dense(line)), "the example lacks {line:?}");
    }
}
