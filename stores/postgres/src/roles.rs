//! The roles, as a script that an operator runs.

use sendoff::emit::Names;

/// The script with the names put in. Roles have no schema: they are called by the prefix alone.
pub(crate) fn roles_sql(names: &Names) -> String {
    let mut script = names.render(include_str!("../roles.sql"));
    for role in ["emitter", "consumer", "worker", "relay_role", "operator", "viewer"] {
        script = script.replace(&format!("{{{role}}}"), &format!("{}{role}", names.prefix()));
    }
    script.replace("{schema}", names.schema().unwrap_or_default())
}
