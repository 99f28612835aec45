//! What is to happen with rows, as the script takes it.

use sendoff::store::{Room, Settlement, Verdict};
use serde_json::{Value, json};

use crate::micros;
use crate::rows::member_of;

/// How many characters of an error are kept.
const LONGEST_ERROR: usize = 2_000;

pub(crate) fn settlement(settlement: &Settlement) -> Value {
    let place = &settlement.place;
    let is_done = settlement.legs.iter().all(|leg| leg.verdict == Verdict::Delivered);
    // Where every sink has confirmed it, it is one delivered message and not one a leg.
    let legs = settlement.legs.iter().filter(|_| !is_done);
    let mut value = json!({
        "ready": place.room == Room::Ready,
        "lane": place.lane,
        "member": member_of(place),
        "legs": legs.map(|leg| json!({"leg": &*leg.leg, "verdict": verdict(&leg.verdict)})).collect::<Vec<_>>(),
    });
    // What is not there is nil in Lua; null would be something.
    if let Some(key) = &settlement.key {
        value["key"] = (**key).into();
    }
    value
}

fn verdict(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Delivered => json!({"is": "delivered"}),
        Verdict::Hold => json!({"is": "hold"}),
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
