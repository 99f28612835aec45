//! The core, the relay and the operator service know no database driver and no broker client.

use super::members::Members;

/// The crates that must stay free of them.
const FREE: &[&str] = &["sendoff-core", "sendoff-relay", "sendoff-worker", "sendoff-operate"];

/// A name in this list also stands for names that continue it with a dash, such as `sqlx-core`.
const DRIVERS: &[&str] = &[
    // databases
    "diesel",
    "diesel-async",
    "libsqlite3-sys",
    "mysql",
    "mysql_async",
    "postgres",
    "rusqlite",
    "sea-orm",
    "sqlx",
    "tiberius",
    "tokio-postgres",
    "tokio-rusqlite",
    // brokers and other ways out
    "async-nats",
    "amqprs",
    "aws-sdk-sns",
    "aws-sdk-sqs",
    "fred",
    "lapin",
    "nats",
    "pulsar",
    "rdkafka",
    "redis",
    "reqwest",
    "rskafka",
    "rumqttc",
];

/// Finds drivers and clients where there must be none.
pub(crate) fn check(members: &Members) -> Vec<String> {
    let mut violations = Vec::new();
    for member in members.0.iter().filter(|member| FREE.contains(&member.name.as_str())) {
        for dependency in member
            .dependencies
            .iter()
            .filter(|dependency| is_driver(&dependency.name))
        {
            violations.push(format!(
                "{}/Cargo.toml: {} depends on {}: SQL belongs into emit/ or stores/, brokers belong into sinks/",
                member.folder, member.name, dependency.name
            ));
        }
    }
    violations
}

fn is_driver(name: &str) -> bool {
    DRIVERS.iter().any(|driver| {
        name.strip_prefix(driver)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_in_the_relay_is_found() {
        let found = check(&Members::of(&[(
            "sendoff-relay",
            "crates/sendoff-relay",
            &["tokio", "sqlx-core"],
        )]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("depends on sqlx-core"));
    }

    #[test]
    fn driver_in_a_store_is_fine() {
        let members = [
            ("sendoff-store-sqlite", "stores/sqlite", ["rusqlite"].as_slice()),
            ("sendoff-core", "c", &["serde"]),
        ];
        assert!(check(&Members::of(&members)).is_empty());
    }
}
