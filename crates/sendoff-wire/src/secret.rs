//! Values that never appear in a log, an error or `config show`.

use std::fmt;
use std::path::PathBuf;

use sendoff::{Error, ErrorKind, Result};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

/// A password, a token or a key. In a configuration it is a string, `{ env = "NAME" }` or `{ file = "path" }`.
///
/// The value prints as `***`. Serialised, a reference to a variable or a file stays a reference.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Secret {
    /// The value itself, as text in the configuration.
    Value(String),
    /// The value of this environment variable.
    Env {
        /// The name of the environment variable.
        env: String,
    },
    /// The content of this file, without the line break at its end.
    File {
        /// The path of the file.
        file: PathBuf,
    },
}

impl Secret {
    /// Reads the value of the secret.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the variable or the file cannot be read. The error names it, never the value.
    pub fn reveal(&self) -> Result<String> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Env { env } => std::env::var(env).map_err(|error| {
                Error::new(
                    ErrorKind::Invalid,
                    format!("cannot read the secret in the environment variable {env}"),
                )
                .because(match error {
                    std::env::VarError::NotPresent => "the variable is not set",
                    std::env::VarError::NotUnicode(_) => "its value is not UTF-8",
                })
                .next_step("set it for the relay's process, or change the name in the configuration")
            }),
            Self::File { file } => match std::fs::read_to_string(file) {
                Ok(text) => Ok(text.trim_end_matches(['\n', '\r']).to_owned()),
                Err(error) => Err(Error::new(
                    ErrorKind::Invalid,
                    format!("cannot read the secret in the file {}", file.display()),
                )
                .because(error.to_string())
                .next_step("allow the relay's user to read it, or change the path in the configuration")
                .with_source(error)),
            },
        }
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::Value(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::Value(value.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("***"),
            Self::Env { env } => write!(f, "*** (variable {env})"),
            Self::File { file } => write!(f, "*** (file {})", file.display()),
        }
    }
}

/// A reference as it is written in a configuration, or `***` for a value.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, place) = match self {
            Self::Value(_) => return serializer.serialize_str("***"),
            Self::Env { env } => ("env", env.as_str().into()),
            Self::File { file } => ("file", file.to_string_lossy()),
        };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(kind, &place)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Config {
        password: Secret,
    }

    #[test]
    fn a_secret_is_read_from_where_it_is_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hunter2\n").unwrap();
        let text = format!("password = {{ file = {:?} }}", file.path());
        let config: Config = toml::from_str(&text).unwrap();
        assert_eq!(config.password.reveal().unwrap(), "hunter2");
        let config: Config = toml::from_str("password = 'hunter2'").unwrap();
        assert_eq!(config.password.reveal().unwrap(), "hunter2");
        let config: Config = toml::from_str("password = { env = 'PATH' }").unwrap();
        assert_eq!(config.password.reveal().unwrap(), std::env::var("PATH").unwrap());
    }

    #[test]
    fn a_secret_never_prints_itself() {
        let secret = Secret::from("hunter2");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
    }

    #[test]
    fn where_a_secret_is_kept_can_be_read_again() {
        for text in [r#"{"env":"A"}"#, r#"{"file":"/run/a"}"#] {
            let secret: Secret = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&secret).unwrap(), text);
        }
    }

    #[test]
    fn a_secret_that_is_not_there_is_named() {
        let secret = Secret::Env {
            env: "SENDOFF_NOT_THERE".into(),
        };
        let error = secret.reveal().unwrap_err().to_string();
        assert!(
            error.contains("SENDOFF_NOT_THERE") && error.contains("not set"),
            "{error}"
        );
    }
}
