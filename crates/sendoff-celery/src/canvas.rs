//! Groups and chords.

use crate::options::{array, object};
use crate::{Signature, Task};

impl Task {
    /// Tasks that run in parallel as one group: emit the result with [`sendoff::Outbox::emit_many`].
    pub fn group(tasks: impl IntoIterator<Item = Task>) -> Vec<Task> {
        let group = sendoff::Uuid::now_v7();
        tasks
            .into_iter()
            .zip(0_u32..)
            .map(|(task, index)| task.group_member(&group.to_string(), index))
            .collect()
    }

    /// Tasks that run in parallel, and a body that then gets the list of their results.
    ///
    /// This is one message, for Celery's own task `celery.chord`: a worker creates the chord in the result backend, so
    /// that the emitting service needs no access to it. The id is that of the starting task; the body has its own.
    #[must_use]
    pub fn chord<T: Into<Signature>>(header: impl IntoIterator<Item = T>, body: impl Into<Signature>) -> Task {
        let header = header.into_iter().map(|task| task.into().with_own_id().to_json());
        let header = array(header);
        let body = body.into().with_own_id().to_json();
        let mut chord = Task::new("celery.chord");
        chord.call.kwargs = object([("header", header.as_str()), ("body", body.as_str())].into_iter());
        chord
    }
}

#[cfg(test)]
mod tests {
    use sendoff::Message;
    use serde_json::Value;

    use super::*;

    fn payload(task: Task) -> Value {
        serde_json::from_slice(Message::from(task).payload()).unwrap()
    }

    #[test]
    fn members_of_a_group_share_its_id_and_are_counted() {
        let group = Task::group([Task::new("a"), Task::new("b"), Task::new("c")]);
        let options: Vec<Value> = group.into_iter().map(|task| payload(task)["options"].clone()).collect();
        assert!(options[0]["group_id"].is_string());
        assert!(options.iter().all(|each| each["group_id"] == options[0]["group_id"]));
        let indexes: Vec<_> = options
            .iter()
            .map(|each| each["group_index"].as_u64().unwrap())
            .collect();
        assert_eq!(indexes, [0, 1, 2]);
    }

    #[test]
    fn a_chord_is_one_message_for_celerys_own_task() {
        let chord = Task::chord([Task::new("a"), Task::new("b")], Task::new("sum"));
        assert_eq!(chord.name(), "celery.chord");
        let kwargs = payload(chord)["kwargs"].clone();
        assert_eq!(kwargs["header"].as_array().map(Vec::len), Some(2));
        assert_eq!(kwargs["body"]["task"], "sum");
        assert!(kwargs["header"][1]["options"]["task_id"].is_string());
    }
}
