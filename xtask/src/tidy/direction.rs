//! Dependencies point one way: towards the core.

use super::members::{Member, Members};

/// Which crates of the workspace a crate may know, by the folder it is in.
enum MayKnow {
    Only(&'static [&'static str]),
    Everything,
}

/// The first row whose folder matches decides; `*` at the end stands for any name.
const RULES: &[(&str, MayKnow)] = &[
    ("crates/sendoff-core", MayKnow::Only(&[])),
    ("crates/sendoff-celery", MayKnow::Only(&["sendoff-core"])),
    ("crates/sendoff-relay", MayKnow::Only(&["sendoff-core"])),
    (
        "crates/sendoff-worker",
        MayKnow::Only(&["sendoff-core", "sendoff-relay"]),
    ),
    (
        "crates/sendoff-watch",
        MayKnow::Only(&["sendoff-core", "sendoff-relay"]),
    ),
    ("crates/sendoff-operate", MayKnow::Only(&["sendoff-core"])),
    ("crates/sendoff-tls", MayKnow::Only(&["sendoff-core"])),
    ("crates/sendoff-wire", MayKnow::Only(&["sendoff-core", "sendoff-tls"])),
    (
        "crates/sendoff-testkit",
        MayKnow::Only(&["sendoff-core", "sendoff-relay", "sendoff-operate", "sendoff-wire"]),
    ),
    ("context/*", MayKnow::Only(&["sendoff-core"])),
    ("emit/*", MayKnow::Only(&["sendoff-core"])),
    ("stores/*", MayKnow::Only(&["sendoff-core", "sendoff-tls"])),
    ("sinks/*", MayKnow::Only(&["sendoff-core", "sendoff-wire"])),
    // The places where everything is put together.
    ("crates/sendoff", MayKnow::Everything),
    ("bin/*", MayKnow::Everything),
    ("admin*", MayKnow::Everything),
    ("examples*", MayKnow::Everything),
    ("bench", MayKnow::Everything),
    ("xtask", MayKnow::Everything),
];

/// One edge that the rules forbid and that is there on purpose.
struct Exception {
    from: &'static str,
    to: &'static str,
    /// Why the edge is right: a row without a reason is not a row.
    #[allow(dead_code, reason = "written for the reader of the table")]
    because: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        from: "sendoff-sink-celery",
        to: "sendoff-celery",
        because: "how a task is stored is written in one place",
    },
    Exception {
        from: "sendoff-store-django-celery",
        to: "sendoff-celery",
        because: "how a task is stored is written in one place",
    },
    Exception {
        from: "sendoff-sink-celery",
        to: "sendoff-sink-rabbitmq",
        because: "tasks for Celery are messages of RabbitMQ: confirms, returns and outages are understood in one place",
    },
    Exception {
        from: "sendoff-sink-celery",
        to: "sendoff-sink-redis",
        because: "tasks for Celery are elements of lists in Redis: connections and refusals are understood in one place",
    },
    Exception {
        from: "sendoff-store-django-celery",
        to: "sendoff-store-postgres",
        because: "other tables in the same kind of database: transport, limits and errors are understood in one place",
    },
    Exception {
        from: "sendoff-store-django-celery",
        to: "sendoff-store-mysql",
        because: "other tables in the same kind of database: transport, limits and errors are understood in one place",
    },
    Exception {
        from: "sendoff-store-django-celery",
        to: "sendoff-store-sqlite",
        because: "other tables in the same kind of database: transport, limits and errors are understood in one place",
    },
];

/// Finds crates that know a crate they must not know.
pub(crate) fn check(members: &Members) -> Vec<String> {
    members.0.iter().flat_map(check_member).collect()
}

fn check_member(member: &Member) -> Vec<String> {
    let Some((_, may_know)) = RULES.iter().find(|(folder, _)| matches(folder, &member.folder)) else {
        return vec![format!(
            "{}/Cargo.toml: no rule says which crates {} may depend on: add its folder to RULES in xtask",
            member.folder, member.name
        )];
    };
    let MayKnow::Only(allowed) = may_know else {
        return Vec::new();
    };
    let own = member.dependencies.iter().filter(|dependency| dependency.own);
    own.filter(|dependency| !allowed.contains(&dependency.name.as_str()))
        .filter(|dependency| !is_exception(&member.name, &dependency.name))
        .map(|dependency| {
            let allowed = if allowed.is_empty() {
                "none".to_owned()
            } else {
                allowed.join(", ")
            };
            format!(
                "{}/Cargo.toml: {} depends on {}, but may only know {allowed} of this workspace",
                member.folder, member.name, dependency.name
            )
        })
        .collect()
}

fn matches(pattern: &str, folder: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == folder, |start| folder.starts_with(start))
}

fn is_exception(from: &str, to: &str) -> bool {
    EXCEPTIONS
        .iter()
        .any(|exception| exception.from == from && exception.to == to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_that_knows_a_sink_is_found() {
        let members = Members::of(&[
            ("sendoff-core", "crates/sendoff-core", &["serde"]),
            ("sendoff-sink-file", "sinks/file", &["sendoff-core"]),
            (
                "sendoff-store-sqlite",
                "stores/sqlite",
                &["sendoff-core", "sendoff-sink-file"],
            ),
        ]);
        let found = check(&members);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("stores/sqlite/Cargo.toml: sendoff-store-sqlite depends on sendoff-sink-file"));
    }

    #[test]
    fn core_that_knows_the_relay_is_found() {
        let members = Members::of(&[
            ("sendoff-core", "crates/sendoff-core", &["sendoff-relay"]),
            ("sendoff-relay", "crates/sendoff-relay", &["sendoff-core"]),
        ]);
        assert_eq!(check(&members).len(), 1);
    }

    #[test]
    fn crate_in_an_unknown_folder_is_found() {
        assert!(check(&Members::of(&[("stray", "crates/stray", &[])]))[0].contains("no rule"));
    }

    #[test]
    fn command_line_may_know_everything() {
        let members = Members::of(&[
            ("sendoff-core", "crates/sendoff-core", &[]),
            ("sendoff-relay", "crates/sendoff-relay", &["sendoff-core", "tokio"]),
            (
                "sendoff-cli",
                "bin/sendoff",
                &["sendoff-core", "sendoff-relay", "rusqlite"],
            ),
        ]);
        assert!(check(&members).is_empty());
    }
}
