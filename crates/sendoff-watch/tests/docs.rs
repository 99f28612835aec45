//! The dashboard, the alerts and the page about metrics name what exists.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

use std::collections::BTreeSet;
use std::path::Path;

use sendoff_watch::{FAMILIES, Kind, Obstacle};
use serde_json::Value;

/// Labels that Prometheus itself adds, or that come from the configuration of whoever scrapes.
const FOREIGN: [&str; 3] = ["job", "instance", "le"];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All series' names, each with the labels that it has.
fn known(name: &str) -> Option<Vec<&'static str>> {
    let family = FAMILIES.iter().find(|family| match family.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"]
            .iter()
            .any(|end| name == format!("{}{end}", family.name)),
        Kind::Counter | Kind::Gauge => name == family.name,
    })?;
    Some(family.labels.iter().copied().chain(FOREIGN).collect())
}

/// Words of letters, digits and underscores, with where they end.
fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = text
        .char_indices()
        .filter(move |(at, c)| is_letter(*c) && !text[..*at].chars().next_back().is_some_and(is_letter));
    starts.map(move |(at, _)| {
        let end = text[at..]
            .find(|c| !is_letter(c))
            .map_or(text.len(), |length| at + length);
        (&text[at..end], &text[end..])
    })
}

/// Checks every metric and every label in a query.
fn check(query: &str) -> usize {
    let mut labels = BTreeSet::new();
    let mut metrics = 0;
    for (word, after) in words(query).filter(|(word, _)| word.starts_with("sendoff_")) {
        let its_labels = known(word).unwrap_or_else(|| panic!("there is no metric {word}: {query}"));
        metrics += 1;
        if let Some(matchers) = after.strip_prefix('{').and_then(|rest| rest.split('}').next()) {
            for matcher in matchers.split(',') {
                let label = matcher.split(['=', '!', '~']).next().unwrap().trim();
                assert!(its_labels.contains(&label), "{word} has no label {label:?}: {query}");
            }
        }
        labels.extend(its_labels);
    }
    for grouped in query.split("by (").skip(1) {
        for label in grouped.split(')').next().unwrap().split(',') {
            assert!(
                labels.contains(label.trim()),
                "no metric here has the label {label:?}: {query}"
            );
        }
    }
    assert!(metrics > 0, "no metric in {query}");
    metrics
}

#[test]
fn every_query_of_the_dashboard_names_metrics_and_labels_that_exist() {
    let dashboard: Value = serde_json::from_str(&read("docs/grafana/sendoff.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    let mut used = String::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["id"]);
        assert!(!panel["title"].as_str().unwrap().is_empty() && !panel["description"].as_str().unwrap().is_empty());
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            check(query);
            used.push_str(query);
            used.push('\n');
        }
    }
    check(dashboard["templating"]["list"][1]["query"]["query"].as_str().unwrap());
    for family in FAMILIES.iter().filter(|family| {
        ![
            "sendoff_build_info",
            "sendoff_in_flight_bytes",
            "sendoff_sink_in_flight_deliveries",
        ]
        .contains(&family.name)
    }) {
        assert!(
            words(&used).any(|(word, _)| word.starts_with(family.name)),
            "{} is not shown",
            family.name
        );
    }
}

#[test]
fn every_alert_names_metrics_and_labels_that_exist() {
    let rules: Value = serde_saphyr::from_str(&read("docs/prometheus/alerts.yml")).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 10);
    let mut names = BTreeSet::new();
    for rule in rules {
        assert!(names.insert(rule["alert"].as_str().unwrap()));
        check(rule["expr"].as_str().unwrap());
        for key in ["summary", "description"] {
            assert!(rule["annotations"][key].is_string(), "{key} of {}", rule["alert"]);
        }
        assert!(rule["labels"]["severity"].is_string());
    }
}

#[test]
fn every_metric_and_every_obstacle_is_on_the_page() {
    let page = read("docs/watch.md");
    for family in FAMILIES {
        let labels = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect::<Vec<_>>();
        let start = format!("| `{}` | {} |", family.name, labels.join(", "));
        assert!(
            page.contains(&start.replace("|  |", "| |")),
            "{start} is not in docs/watch.md"
        );
    }
    for kind in Obstacle::KINDS {
        assert!(
            page.contains(&format!("| `{kind}` |")),
            "{kind} is not in docs/watch.md"
        );
    }
    for (word, _) in words(&page)
        .filter(|(word, _)| word.starts_with("sendoff_") && !["sendoff_watch", "sendoff_relay"].contains(word))
    {
        let is_family = FAMILIES.iter().any(|family| family.name == word);
        assert!(is_family || known(word).is_some(), "docs/watch.md names {word}");
    }
}
