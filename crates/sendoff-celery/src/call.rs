//! The call of a task: name, arguments and options as JSON.

use sendoff::{Error, ErrorKind, Result};
use serde::Serialize;

use crate::finite::is_finite;
use crate::options::{Options, text_to_json};

/// A name, its arguments and its options.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) args: String,
    pub(super) kwargs: String,
    pub(super) options: Options,
}

impl Call {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            args: "[]".to_owned(),
            kwargs: "{}".to_owned(),
            options: Options::default(),
        }
    }

    pub(super) fn set_args(&mut self, args: &impl Serialize) -> Result<()> {
        self.args = self.container("args", args, "[]", "a tuple, an array or a list")?;
        Ok(())
    }

    pub(super) fn set_kwargs(&mut self, kwargs: &impl Serialize) -> Result<()> {
        self.kwargs = self.container("kwargs", kwargs, "{}", "a struct or a map")?;
        Ok(())
    }

    fn container(&self, what: &str, value: &impl Serialize, empty: &str, shape: &str) -> Result<String> {
        let json = self.json(what, value)?;
        if json == "null" {
            return Ok(empty.to_owned());
        }
        if json.starts_with(&empty[..1]) {
            return Ok(json);
        }
        Err(Error::new(
            ErrorKind::Invalid,
            format!("the {what} of the task {:?} are invalid", self.name),
        )
        .next_step(format!("use {shape}")))
    }

    /// Any value as JSON; `what` names it in the error.
    pub(super) fn json(&self, what: &str, value: &(impl Serialize + ?Sized)) -> Result<String> {
        if !is_finite(value) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("the {what} of the task {:?} cannot be written as JSON", self.name),
            )
            .because("the value contains an infinite float or NaN, which JSON does not support")
            .next_step("send None or text instead"));
        }
        serde_json::to_string(value).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                format!("the {what} of the task {:?} do not serialise", self.name),
            )
            .because("a Serialize implementation failed")
            .next_step("check for maps with keys that are not strings")
            .with_source(error)
        })
    }

    /// The payload of a stored task.
    pub(super) fn to_payload(&self) -> String {
        format!(
            r#"{{"args":{},"kwargs":{},"options":{}}}"#,
            self.args,
            self.kwargs,
            self.options.to_json()
        )
    }

    /// A Celery signature.
    pub(super) fn to_signature(&self, kind: Option<&str>, immutable: bool) -> String {
        format!(
            r#"{{"task":{},"args":{},"kwargs":{},"options":{},"subtask_type":{},"immutable":{immutable}}}"#,
            text_to_json(&self.name),
            self.args,
            self.kwargs,
            self.options.to_json(),
            kind.map_or_else(|| "null".to_owned(), text_to_json),
        )
    }
}
