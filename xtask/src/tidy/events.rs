//! Every log line has an event, and docs/events.md lists all of them.

use std::collections::BTreeMap;

use super::tree::{File, Tree};

const PAGE: &str = "docs/events.md";

/// In two pieces, so that this file does not find itself.
const MACROS: &[&str] = &[
    concat!("tracing::", "error!("),
    concat!("tracing::", "warn!("),
    concat!("tracing::", "info!("),
    concat!("tracing::", "debug!("),
    concat!("tracing::", "trace!("),
];

/// What a line about a message says of it.
const IDS: &[&str] = &["id = ", "topic = ", "sink = "];

/// Finds log lines without an event, lines about messages without their ids, events that are not on the page, and events
/// that are only there.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let Some(page) = tree.file(PAGE) else {
        return vec![format!("{PAGE}: is missing: it lists the events of log lines")];
    };
    let mut listed: BTreeMap<&str, bool> = listed(&page.text).map(|event| (event, false)).collect();
    let mut violations = Vec::new();
    for file in tree.rust().filter(|file| is_ruled(file)) {
        for (number, call) in calls(file) {
            let place = format!("{}:{number}", file.path);
            let Some(event) = event(&call) else {
                violations.push(format!("{place}: a log line has no event: begin it with event = \"…\""));
                continue;
            };
            match listed.get_mut(event) {
                Some(used) => *used = true,
                None => violations.push(format!("{place}: the event `{event}` is not in {PAGE}")),
            }
            let missing = IDS.iter().find(|id| !call.contains(**id));
            if let (true, Some(id)) = (event.starts_with("message_"), missing) {
                violations.push(format!("{place}: `{event}` is about a message and has no `{id}…`"));
            }
        }
    }
    let unused = listed.iter().filter(|(_, used)| !**used);
    violations.extend(unused.map(|(event, _)| format!("{PAGE}: no log line has the event `{event}`")));
    violations
}

fn is_ruled(file: &File) -> bool {
    let mut folders = file.path.split('/');
    let first = folders.next().unwrap_or_default();
    let is_program = matches!(
        first,
        "crates" | "context" | "emit" | "stores" | "sinks" | "bin" | "admin"
    );
    is_program && folders.nth(1) == Some("src") && !file.is_test() && !file.path.starts_with("crates/sendoff-testkit/")
}

/// The calls of the macros, each with the number of its line, up to the parenthesis that ends it.
fn calls(file: &File) -> Vec<(usize, String)> {
    let lines = file.lines_outside_tests();
    let mut calls = Vec::new();
    for (at, (number, line)) in lines.iter().enumerate() {
        let is_comment = line.trim_start().starts_with("//");
        let Some(start) = MACROS.iter().find_map(|name| line.find(name)).filter(|_| !is_comment) else {
            continue;
        };
        let mut call = String::new();
        let (mut depth, mut in_text, mut escaped) = (0_i32, false, false);
        let rest = lines[at + 1..].iter().map(|(_, line)| *line);
        'call: for line in std::iter::once(&line[start..]).chain(rest) {
            for letter in line.chars() {
                call.push(letter);
                match letter {
                    '"' if !escaped => in_text = !in_text,
                    '(' if !in_text => depth += 1,
                    ')' if !in_text => depth -= 1,
                    _ => {}
                }
                escaped = letter == '\\' && !escaped;
                if depth == 0 && letter == ')' && !in_text {
                    break 'call;
                }
            }
            escaped = false;
            call.push('\n');
        }
        calls.push((*number, call));
    }
    calls
}

fn event(call: &str) -> Option<&str> {
    call.split_once("event = \"")?.1.split('"').next()
}

/// The events in the first column of the page's tables.
fn listed(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(event, _)| event))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_line(page: &str, arguments: &str) -> Vec<String> {
        let text = format!("fn a() {{\n    {}{arguments});\n}}\n", MACROS[1]);
        check(&Tree::of(&[(PAGE, page), ("sinks/http/src/sink.rs", &text)]))
    }

    #[test]
    fn a_line_that_is_listed_is_fine() {
        let page = "| event | level |\n|---|---|\n| `sink_down` | warn |\n";
        assert_eq!(
            check_line(page, "event = \"sink_down\", \"the (sink\""),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_line_without_an_event_is_found() {
        let found = check_line("", "\n        count,\n        \"no event = here\"");
        assert!(
            found.len() == 1 && found[0].starts_with("sinks/http/src/sink.rs:2:"),
            "{found:?}"
        );
    }

    #[test]
    fn an_event_on_one_side_only_is_found() {
        let found = check_line("| `sink_up` | info |\n", "event = \"sink_down\", \"a\"");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("`sink_down` is not in") && found[1].contains("`sink_up`"),
            "{found:?}"
        );
    }

    #[test]
    fn a_line_about_a_message_without_its_ids_is_found() {
        let page = "| `message_lost` | error |\n";
        let good = "event = \"message_lost\", id = %id, topic = topic, sink = sink, \"a\"";
        assert_eq!(check_line(page, good), Vec::<String>::new());
        let found = check_line(page, "event = \"message_lost\", id = %id, topic = topic, \"a\"");
        assert!(found.len() == 1 && found[0].contains("`sink = …`"), "{found:?}");
    }
}
