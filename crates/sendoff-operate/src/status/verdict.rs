//! The rules: what is wrong, how bad it is, and how it is said in one sentence.

use super::words::{age_in_words, counted, rate_in_words};
use super::{Level, ReasonView, SampledCount, SinkStateView, SinkView, StatusView};

/// A sink that is down for less may come back by itself.
const SHORT_OUTAGE: f64 = 60.0;
/// Messages that wait for longer are late.
const LATE: f64 = 60.0;
/// Lanes are without a relay for a moment whenever relays come and go.
const STUCK: f64 = 30.0;
/// How many reasons the sentence names.
const NAMED: usize = 3;

/// Sets the level, the reasons and the verdict.
pub(super) fn judge(view: &mut StatusView) {
    let mut found = Vec::new();
    relays(view, &mut found);
    for sink in &view.sinks {
        sink_reasons(view, sink, &mut found);
    }
    flow(view, &mut found);
    lanes(view, &mut found);
    rows(view, &mut found);
    // The worst first; otherwise in the order of the rules.
    found.sort_by_key(|reason| std::cmp::Reverse(reason.level));
    view.level = found.first().map_or(Level::Ok, |reason| reason.level);
    view.verdict = sentence(view, &found);
    view.reasons = found;
}

fn reason(level: Level, code: &'static str, text: String) -> ReasonView {
    ReasonView { level, code, text }
}

fn relays(view: &StatusView, found: &mut Vec<ReasonView>) {
    let alive = || view.relays.iter().filter(|relay| relay.alive);
    if alive().count() == 0 {
        let beats = view.relays.iter().map(|relay| relay.beat_seconds);
        let mut text = "no relay is alive".to_owned();
        if let Some(last) = beats.reduce(f64::min) {
            text += &format!(", the last one was seen {} ago", age_in_words(last));
        }
        let backlog = view.backlog.count;
        text += &if backlog.count > 0 {
            format!(
                ", {}",
                counted(backlog, backlog.is_one(), "message waits", "messages wait")
            )
        } else {
            "; nothing waits".to_owned()
        };
        let level = if backlog.count > 0 {
            Level::Critical
        } else {
            Level::Warning
        };
        found.push(reason(level, "no_relay", text));
    }
    for relay in alive().filter(|relay| relay.stale) {
        let age = age_in_words(relay.figures_seconds.unwrap_or(0.0));
        let text = format!("the figures of {} are {age} old", relay.name);
        found.push(reason(Level::Warning, "stale_figures", text));
    }
    if alive().any(|relay| relay.config_differs) {
        let text = "relays have different configurations".to_owned();
        found.push(reason(Level::Warning, "configurations_differ", text));
    }
}

fn sink_reasons(view: &StatusView, sink: &SinkView, found: &mut Vec<ReasonView>) {
    let name = &sink.name;
    let deferred = kept_waiting(sink);
    match sink.state {
        SinkStateView::Down => {
            let down = sink.down_seconds.unwrap_or(0.0);
            let level = if down < SHORT_OUTAGE {
                Level::Warning
            } else {
                Level::Critical
            };
            let of = if sink.relays_down < sink.relays {
                format!(" for {} of {} relays", sink.relays_down, sink.relays)
            } else {
                String::new()
            };
            let text = format!("{name} is down{of} for {}{deferred}", age_in_words(down));
            found.push(reason(level, "sink_down", text));
        }
        SinkStateView::Paused => {
            let by = sink.paused_by.as_deref().unwrap_or_default();
            let paused = age_in_words(sink.paused_seconds.unwrap_or(0.0));
            let text = format!("{name} is paused by {by} for {paused}{deferred}");
            found.push(reason(Level::Warning, "sink_paused", text));
        }
        SinkStateView::Unknown if sink.backlog.count.count > 0 && is_known(view) => {
            let backlog = sink.backlog.count;
            let waiting = counted(backlog, backlog.is_one(), "delivery", "deliveries");
            let text = format!("no relay has the sink {name}; waiting for it: {waiting}");
            found.push(reason(Level::Warning, "sink_unknown", text));
        }
        SinkStateView::Up | SinkStateView::RampingUp | SinkStateView::Unknown => {}
    }
}

/// What waits for a sink that takes nothing: deferred deliveries, and messages that relays do not even read while no sink
/// takes any.
fn kept_waiting(sink: &SinkView) -> String {
    let mut text = String::new();
    let deferred = sink.deferred;
    if deferred.count > 0 {
        text += &format!(
            ", {} deferred",
            counted(deferred, deferred.is_one(), "delivery", "deliveries")
        );
    }
    let others = deferred.count + sink.retry.count + sink.blocked.count;
    let unread = SampledCount {
        count: sink.backlog.count.count.saturating_sub(others),
        ..sink.backlog.count
    };
    if unread.count > 0 {
        let (one, many) = if deferred.count > 0 {
            ("more message waits", "more messages wait")
        } else {
            ("message waits", "messages wait")
        };
        text += &format!(", {}", counted(unread, unread.is_one(), one, many));
    }
    text
}

/// Whether every live relay has written which sinks it has.
fn is_known(view: &StatusView) -> bool {
    let mut alive = view.relays.iter().filter(|relay| relay.alive).peekable();
    alive.peek().is_some() && alive.all(|relay| relay.figures_seconds.is_some())
}

/// Whether pending messages move. A sink that is down or paused explains why they do not.
fn flow(view: &StatusView, found: &mut Vec<ReasonView>) {
    let is_shut = |sink: &SinkView| matches!(sink.state, SinkStateView::Down | SinkStateView::Paused);
    let is_alive = view.relays.iter().any(|relay| relay.alive);
    let Some(oldest) = view.pending.oldest_seconds.filter(|oldest| *oldest >= LATE) else {
        return;
    };
    if !is_alive || view.sinks.iter().any(is_shut) || view.topics.iter().any(|topic| topic.paused_by.is_some()) {
        return;
    }
    let (pending, age) = (view.pending.count, age_in_words(oldest));
    let is_fresh = view
        .relays
        .iter()
        .any(|relay| relay.alive && relay.rates.is_some() && !relay.stale);
    let moves = view.rates.is_none_or(|rates| rates.delivered > 0.0);
    if is_fresh && !moves {
        let text = format!("nothing moves: {pending} pending, the oldest for {age}, no delivery in the last minute");
        found.push(reason(Level::Critical, "nothing_moves", text));
    } else {
        let text = format!("delivery is late: {pending} pending, the oldest for {age}");
        found.push(reason(Level::Warning, "late", text));
    }
}

fn lanes(view: &StatusView, found: &mut Vec<ReasonView>) {
    if let Some(lane) = view.lanes.stray {
        let text = format!(
            "no relay reads a row in lane {lane}: only 0 to {} are read",
            view.lanes.total.saturating_sub(1)
        );
        found.push(reason(Level::Critical, "stray_row", text));
    }
    if !view.relays.iter().any(|relay| relay.alive) {
        return;
    }
    let stuck = view.lanes.stuck.filter(|stuck| stuck.oldest_seconds >= STUCK);
    if let Some(stuck) = stuck {
        let lanes = counted(
            stuck.lanes,
            stuck.lanes == 1,
            "lane with messages has",
            "lanes with messages have",
        );
        let text = format!(
            "{lanes} no relay, the oldest waits for {}",
            age_in_words(stuck.oldest_seconds)
        );
        found.push(reason(Level::Critical, "lanes_stuck", text));
    } else if !view.lanes.free.is_empty() {
        let free = view.lanes.free.len();
        let text = counted(free, free == 1, "lane has", "lanes have") + " no relay";
        found.push(reason(Level::Warning, "lanes_free", text));
    }
}

/// What is in the tables although it should not be there for long.
fn rows(view: &StatusView, found: &mut Vec<ReasonView>) {
    for topic in &view.topics {
        if let Some(by) = &topic.paused_by {
            let paused = age_in_words(topic.paused_seconds.unwrap_or(0.0));
            let text = format!("the topic {} is paused by {by} for {paused}", topic.topic);
            found.push(reason(Level::Warning, "topic_paused", text));
        }
    }
    let keys = view.blocked_keys;
    if keys.count > 0 {
        let text = counted(keys, keys.is_one(), "key", "keys") + " blocked";
        found.push(reason(Level::Warning, "keys_blocked", text));
    }
    let dead = view.dead.count;
    if dead.count > 0 {
        let text = counted(dead, dead.is_one(), "dead letter", "dead letters");
        found.push(reason(Level::Warning, "dead_letters", text));
    }
    if let Some(failed) = view.jobs.map(|jobs| jobs.failed).filter(|failed| *failed > 0) {
        let text = counted(super::grouped(failed), failed == 1, "failed job", "failed jobs");
        found.push(reason(Level::Warning, "failed_jobs", text));
    }
}

fn sentence(view: &StatusView, found: &[ReasonView]) -> String {
    if found.is_empty() {
        return all_is_well(view);
    }
    let mut texts: Vec<String> = found.iter().take(NAMED).map(|reason| reason.text.clone()).collect();
    if found.len() > NAMED {
        texts.push(format!("{} more", found.len() - NAMED));
    }
    texts.join("; ")
}

fn all_is_well(view: &StatusView) -> String {
    let relays = view.relays.iter().filter(|relay| relay.alive).count();
    let relays = counted(relays, relays == 1, "relay", "relays");
    let rates = view.rates.unwrap_or_default();
    let Some(oldest) = view.pending.oldest_seconds else {
        return if rates.delivered > 0.0 {
            format!("{} out, nothing waits, {relays}", rate_in_words(rates.delivered))
        } else {
            format!("nothing waits, {relays}")
        };
    };
    format!(
        "{} in, {} out, oldest pending {}, {relays}",
        rate_in_words(rates.read),
        rate_in_words(rates.delivered),
        age_in_words(oldest)
    )
}

#[cfg(test)]
mod tests;
