//! Tasks that Celery runs after, in parallel with, or as part of another task.

use crate::Task;
use crate::call::Call;
use crate::options::{array, object, text_to_json};

/// A task, or a group, chain or chord of tasks, inside another task: the result of Celery's `.s()`.
///
/// Every [`Task`] converts into one.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    call: Call,
    kind: Option<&'static str>,
    immutable: bool,
    has_id: bool,
}

impl Signature {
    /// Tasks that run in parallel.
    pub fn group<T: Into<Signature>>(tasks: impl IntoIterator<Item = T>) -> Self {
        let tasks = tasks.into_iter().enumerate().map(|(index, task)| {
            let mut task = task.into().with_own_id();
            task.call.options.set("group_index", index.to_string());
            task
        });
        Self::of(
            "celery.group",
            "group",
            &[("tasks", array(tasks.map(|task| task.to_json())))],
        )
    }

    /// Tasks that run one after the other, each with the result of the one before it.
    pub fn chain<T: Into<Signature>>(tasks: impl IntoIterator<Item = T>) -> Self {
        let tasks = tasks.into_iter().map(|task| task.into().with_own_id().to_json());
        Self::of("celery.chain", "chain", &[("tasks", array(tasks))])
    }

    /// Tasks that run in parallel, and a body that then gets the list of their results.
    pub fn chord<T: Into<Signature>>(header: impl IntoIterator<Item = T>, body: impl Into<Signature>) -> Self {
        // As in Celery, the group of the header has the id of the chord.
        let id = text_to_json(&sendoff::Uuid::now_v7().to_string());
        let mut header = Self::group(header);
        header.call.options.set("task_id", id.clone());
        header.call.options.set("root_id", "null".to_owned());
        header.call.options.set("parent_id", "null".to_owned());
        let body = body.into().with_own_id().to_json();
        let mut chord = Self::of(
            "celery.chord",
            "chord",
            &[
                ("kwargs", "{}".to_owned()),
                ("header", header.to_json()),
                ("body", body),
            ],
        );
        chord.call.options.set("task_id", id);
        chord.has_id = true;
        chord
    }

    /// Makes the task run without the result of the previous task, like Celery's `.si()`.
    #[must_use]
    pub fn immutable(mut self) -> Self {
        self.immutable = true;
        self
    }

    fn of(name: &str, kind: &'static str, kwargs: &[(&str, String)]) -> Self {
        let mut call = Call::new(name.to_owned());
        call.kwargs = object(kwargs.iter().map(|(name, json)| (*name, json.as_str())));
        Self {
            call,
            kind: Some(kind),
            immutable: false,
            has_id: false,
        }
    }

    /// Adds a generated id now, so that every copy of the surrounding message has the same one.
    pub(super) fn with_own_id(mut self) -> Self {
        if !self.has_id {
            let id = sendoff::Uuid::now_v7().to_string();
            self.call.options.set_text("task_id", &id);
            self.has_id = true;
        }
        self
    }

    pub(super) fn to_json(&self) -> String {
        self.call.to_signature(self.kind, self.immutable)
    }
}

impl From<Task> for Signature {
    fn from(task: Task) -> Self {
        let (call, id) = task.into_call();
        let mut signature = Self {
            call,
            kind: None,
            immutable: false,
            has_id: false,
        };
        if let Some(id) = id {
            signature.call.options.set_text("task_id", &id.to_string());
            signature.has_id = true;
        }
        signature
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(signature: &Signature) -> Value {
        serde_json::from_str(&signature.to_json()).unwrap()
    }

    #[test]
    fn a_task_becomes_a_signature_without_an_id_of_its_own() {
        let task = Task::new("demo.add").args([10]).unwrap();
        assert_eq!(
            Signature::from(task).to_json(),
            concat!(
                r#"{"task":"demo.add","args":[10],"kwargs":{},"options":{},"#,
                r#""subtask_type":null,"immutable":false}"#
            )
        );
    }

    #[test]
    fn tasks_in_a_group_have_ids_and_indexes() {
        let group = parsed(&Signature::group([Task::new("a"), Task::new("b")]).immutable());
        assert_eq!(group["task"], "celery.group");
        assert_eq!(
            (&group["subtask_type"], &group["immutable"]),
            (&json!("group"), &json!(true))
        );
        let options = |at: usize| group["kwargs"]["tasks"][at]["options"].clone();
        assert_eq!(
            (&options(0)["group_index"], &options(1)["group_index"]),
            (&json!(0), &json!(1))
        );
        assert_ne!(options(0)["task_id"], options(1)["task_id"]);
        assert!(options(0)["task_id"].is_string());
    }

    #[test]
    fn a_chord_inside_a_chain_has_the_shape_that_celery_gives_it() {
        let chord = parsed(&Signature::chord([Task::new("a")], Task::new("sum")));
        assert_eq!(chord["subtask_type"], "chord");
        assert_eq!(chord["kwargs"]["header"]["task"], "celery.group");
        assert_eq!(chord["kwargs"]["body"]["task"], "sum");
        assert_eq!(
            chord["kwargs"]["header"]["options"]["task_id"],
            chord["options"]["task_id"]
        );
        assert!(chord["kwargs"]["body"]["options"]["task_id"].is_string());
    }

    #[test]
    fn a_given_id_is_kept() {
        let id = sendoff::Uuid::nil();
        let chain = parsed(&Signature::chain([Task::new("a").with_id(id)]));
        assert_eq!(chain["kwargs"]["tasks"][0]["options"]["task_id"], id.to_string());
    }
}
