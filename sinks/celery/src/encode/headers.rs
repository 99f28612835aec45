//! The headers of a task.

use sendoff::Result;

use super::moment::Moment;
use crate::python::{Text, Value, saferepr_of_args, saferepr_of_kwargs};
use crate::task::TaskCall;

/// All headers: Celery's nineteen, those of the outbox's message, then those of the task, which may replace any.
pub(super) fn headers(
    call: &TaskCall,
    eta: Option<&Moment>,
    expires: Option<&Moment>,
    origin: &str,
    repr_levels: usize,
) -> Result<Vec<(Text, Value)>> {
    let options = &call.options;
    let text = |name| Ok::<_, sendoff::Error>(options.text(name)?.map_or(Value::Null, Value::Text));
    let moment = |moment: Option<&Moment>| moment.map_or(Value::Null, |moment| Value::Text(moment.text.clone()));
    let number = |name| Ok::<_, sendoff::Error>(options.number(name)?.cloned().unwrap_or(Value::Null));
    let count = |name| Ok::<_, sendoff::Error>(Value::from(i64::from(options.whole(name, u32::MAX)?.unwrap_or(0))));
    let group_index = options.whole("group_index", u32::MAX)?;
    let root_id = options.text("root_id")?.filter(|id| !id.is_empty());
    let argsrepr = match options.text("argsrepr")? {
        Some(text) => text,
        None => saferepr_of_args(&call.args, repr_levels),
    };
    let kwargsrepr = match options.text("kwargsrepr")? {
        Some(text) => text,
        None => saferepr_of_kwargs(&call.kwargs, repr_levels),
    };
    let (stamp_names, stamps) = options.stamps();
    let stamp_names = stamp_names.map(|names| names.iter().cloned().map(Value::Text).collect());
    let own = [
        ("lang", "py".into()),
        ("task", call.name.as_str().into()),
        ("id", Value::Text(call.id.clone())),
        ("shadow", text("shadow")?),
        ("eta", moment(eta)),
        ("expires", moment(expires)),
        ("group", text("group_id")?),
        (
            "group_index",
            group_index.map_or(Value::Null, |index| i64::from(index).into()),
        ),
        ("retries", count("retries")?),
        // Celery's documentation swaps the two; its code does not.
        (
            "timelimit",
            Value::List(vec![number("time_limit")?, number("soft_time_limit")?]),
        ),
        ("root_id", Value::Text(root_id.unwrap_or_else(|| call.id.clone()))),
        ("parent_id", text("parent_id")?),
        ("argsrepr", Value::Text(argsrepr)),
        ("kwargsrepr", Value::Text(kwargsrepr)),
        ("origin", origin.into()),
        (
            "ignore_result",
            options.bool("ignore_result")?.map_or(Value::Null, Value::Bool),
        ),
        ("replaced_task_nesting", count("replaced_task_nesting")?),
        ("stamped_headers", stamp_names.map_or(Value::Null, Value::List)),
        ("stamps", Value::Map(stamps)),
    ];
    let mut headers: Vec<(Text, Value)> = own.into_iter().map(|(name, value)| (name.into(), value)).collect();
    // The outbox's headers have each name once, so only Celery's are compared with them: there may be any number.
    let celerys = headers.len();
    for (name, value) in &call.headers {
        if !headers[..celerys].iter().any(|(known, _)| known.is(name)) {
            headers.push((name.as_str().into(), value.as_str().into()));
        }
    }
    Value::set_all(&mut headers, options.map("headers")?);
    Ok(headers)
}
