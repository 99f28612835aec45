//! What the front door offers is written where users look for it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

const MANIFEST: &str = include_str!("../Cargo.toml");
const LIBRARY: &str = include_str!("../src/lib.rs");

/// The names in the section `[features]`.
fn features() -> Vec<&'static str> {
    let section = MANIFEST.split("\n[features]\n").nth(1).unwrap();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn every_feature_is_in_the_table_of_the_documentation() {
    let features = features();
    assert!(features.len() > 25, "{features:?}");
    let table: Vec<&str> = LIBRARY.lines().filter(|line| line.starts_with("//! |")).collect();
    for feature in features {
        let row = table.iter().any(|row| row.contains(&format!("`{feature}`")));
        assert!(row, "src/lib.rs does not list the feature {feature}");
    }
}

#[test]
fn no_feature_is_on_by_default() {
    assert!(!features().contains(&"default"));
}

/// The crate behind a feature, as its manifest describes it.
const BEHIND: &[(&str, &str)] = &[
    ("celery-task", include_str!("../../sendoff-celery/Cargo.toml")),
    (
        "diesel-async-mysql",
        include_str!("../../../emit/diesel-async/Cargo.toml"),
    ),
    ("log-context", include_str!("../../../context/log/Cargo.toml")),
    ("mysql-async", include_str!("../../../emit/mysql-async/Cargo.toml")),
    ("none", MANIFEST),
    ("none", include_str!("../../sendoff-core/Cargo.toml")),
    (
        "opentelemetry",
        include_str!("../../../context/opentelemetry/Cargo.toml"),
    ),
    ("relay", include_str!("../../../Cargo.toml")),
    ("rusqlite", include_str!("../../../emit/rusqlite/Cargo.toml")),
    ("sea-orm", include_str!("../../../emit/sea-orm/Cargo.toml")),
    ("sentry", include_str!("../../../context/sentry/Cargo.toml")),
    ("sqlx-postgres", include_str!("../../../emit/sqlx/Cargo.toml")),
    (
        "tokio-postgres",
        include_str!("../../../emit/tokio-postgres/Cargo.toml"),
    ),
];

#[test]
fn the_page_about_rust_versions_says_what_the_manifests_say() {
    let page = include_str!("../../../docs/rust-versions.md");
    for (feature, manifest) in BEHIND {
        let mut lines = manifest.lines();
        let version = lines.find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
        let version = version.trim_matches('"');
        let names = |row: &&str| {
            row.starts_with("| ") && (row.contains(&format!("`{feature}`")) || row[2..].starts_with(feature))
        };
        let row = page.lines().find(names).unwrap_or_default();
        assert!(
            row.contains(&format!("| {version} |")),
            "{feature} needs {version}: {row}"
        );
    }
}
