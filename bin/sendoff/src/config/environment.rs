//! Settings from the environment: `SENDOFF_RELAY__LEASE` is `lease` in `[relay]`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use sendoff::{Error, ErrorKind, Result};

use super::Override;

const PREFIX: &str = "SENDOFF_";
const NESTING: &str = "__";

/// The settings in `env`, in the order of their names. Variables without a double underscore are not settings: they
/// belong to the program (`SENDOFF_CONFIG`), to tests, or to a container platform.
pub(super) fn settings(env: &BTreeMap<OsString, OsString>) -> Result<Vec<Override>> {
    let mut settings = Vec::new();
    for (name, value) in env {
        let Some(name) = name.to_str() else { continue };
        let Some(path) = name.strip_prefix(PREFIX).filter(|path| path.contains(NESTING)) else {
            continue;
        };
        let Some(value) = value.to_str() else {
            return Err(
                Error::new(ErrorKind::Invalid, format!("the variable {name} is not UTF-8"))
                    .because("the values of settings must be UTF-8 text")
                    .next_step("set the variable to UTF-8 text, or unset the variable"),
            );
        };
        if !value.is_empty() {
            settings.push(Override {
                origin: format!("the variable {name}"),
                path: path.to_ascii_lowercase().replace(NESTING, "."),
                value: value.to_owned(),
            });
        }
    }
    Ok(settings)
}
