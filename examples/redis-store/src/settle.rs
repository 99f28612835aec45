//! Settlements as arguments of the script.

use std::time::Duration;

use sendoff::store::{RetryState, Settlement, TOPIC_IS_PAUSED, Table, Verdict};
use serde_json::{Value, json};

use crate::micros;
use crate::rows::member_of;

/// How many characters of an error are kept.
const LONGEST_ERROR: usize = 2_000;

/// How long messages of a paused topic wait, unless the pause is ended.
const PAUSED_DELAY: Duration = Duration::from_secs(3600);

pub(crate) fn settlement(settlement: &Settlement) -> Value {
    let row_ref = &settlement.row_ref;
    let deliveries = settlement.deliveries.iter();
    let mut value = json!({
        "ready": row_ref.table == Table::Ready,
        "lane": row_ref.lane,
        "member": member_of(row_ref),
        "attempts": settlement.attempts,
        "deliveries": deliveries.map(|sink| json!({"sink": &*sink.sink, "verdict": verdict(&sink.verdict)})).collect::<Vec<_>>(),
    });
    // A missing field is nil in Lua; null would not be nil.
    if let Some(key) = &settlement.key {
        value["key"] = (**key).into();
    }
    value
}

fn verdict(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Delivered => json!({"is": "delivered"}),
        Verdict::Blocked => json!({"is": "blocked"}),
        // The script knows whether the pause still lasts.
        Verdict::Paused { by } => json!({
            "is": "retry", "state": RetryState::Deferred.as_str(), "delay": micros(PAUSED_DELAY), "charged": false,
            "error": TOPIC_IS_PAUSED, "pause": format!("topic:{by}"),
        }),
        Verdict::Retry {
            state,
            delay,
            charged,
            error,
        } => json!({
            "is": "retry", "state": state.as_str(), "delay": micros(*delay), "charged": charged, "error": short(error),
        }),
        Verdict::Dead {
            reason,
            error,
            charged,
            blocks,
        } => json!({
            "is": "dead", "reason": reason.as_str(), "blocks": blocks, "charged": charged, "error": short(error),
        }),
    }
}

fn short(error: &str) -> String {
    error
        .chars()
        .filter(|letter| *letter != '\0')
        .take(LONGEST_ERROR)
        .collect()
}
