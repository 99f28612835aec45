//! The status as lines.

use sendoff::Error;
use sendoff_operate::{
    BacklogView, Level, RelayView, SinkStateView, SinkView, StatusView, TopicView, age_in_words, grouped, rate_in_words,
};

use super::layout::{Entry, Line, paragraph};
use crate::output::Tone;

/// From this width on, names and facts are side by side.
const WIDE: usize = 60;
/// Names that are longer have a line of their own.
const LONGEST_NAME: usize = 24;
/// How many lanes without a relay are named.
const NAMED_LANES: usize = 8;

/// The whole status, in lines of at most `columns`.
pub(super) fn of(view: &StatusView, columns: usize) -> Vec<Line> {
    let tone = match view.level {
        Level::Ok => Tone::Good,
        Level::Warning => Tone::Warning,
        Level::Critical => Tone::Bad,
    };
    let verdict = format!("{}: {}", view.level.as_str(), view.verdict);
    let mut lines = paragraph(&verdict, tone, columns);
    lines.push(Line::plain(""));
    let totals = totals(view);
    lines.extend(listed(0, totals, columns));
    section(&mut lines, "sinks", view.sinks.iter().map(sink).collect(), columns);
    let mut topics: Vec<Fact> = view.topics.iter().map(topic).collect();
    if view.topics_left_out > 0 {
        let more = format!("{} more topics", view.topics_left_out);
        topics.push((more, Tone::Dim, String::new()));
    }
    section(&mut lines, "topics", topics, columns);
    section(&mut lines, "relays", view.relays.iter().map(relay).collect(), columns);
    lines
}

/// The database could not be asked.
pub(super) fn missed(error: &Error, columns: usize) -> Vec<Line> {
    let mut lines = paragraph(&format!("unknown: {}", error.what()), Tone::Bad, columns);
    if let Some(why) = error.why() {
        lines.extend(paragraph(&format!("why: {why}"), Tone::Plain, columns));
    }
    lines.extend(paragraph("It is asked again until it answers.", Tone::Plain, columns));
    lines
}

/// A name, its tone, and what is said about it.
type Fact = (String, Tone, String);

fn section(lines: &mut Vec<Line>, title: &str, facts: Vec<Fact>, columns: usize) {
    if !facts.is_empty() {
        lines.push(Line::plain(""));
        lines.push(Line::plain(title));
        lines.extend(listed(2, facts, columns));
    }
}

fn listed(indent: usize, facts: Vec<Fact>, columns: usize) -> Vec<Line> {
    let longest = facts.iter().map(|(name, ..)| name.chars().count());
    let longest = longest.filter(|length| *length <= LONGEST_NAME).max().unwrap_or(0);
    // On a narrow screen only the short names of the totals have room beside their facts.
    let hang = if columns >= WIDE || indent == 0 {
        indent + longest + 2
    } else {
        indent + 2
    };
    let entry = |(name, tone, facts)| Entry {
        indent,
        hang,
        name,
        tone,
        facts,
    };
    facts.into_iter().flat_map(|fact| entry(fact).lines(columns)).collect()
}

fn totals(view: &StatusView) -> Vec<Fact> {
    let plain = |name: &str, facts: String| (name.to_owned(), Tone::Dim, facts);
    let mut totals = Vec::new();
    let flow = view.rates.map_or_else(
        || "not known: no live relay has written figures".to_owned(),
        |rates| {
            format!(
                "in {}, out {}, retries {}, dead letters {}",
                rate_in_words(rates.read),
                rate_in_words(rates.delivered),
                rate_in_words(rates.retried),
                rate_in_words(rates.dead)
            )
        },
    );
    totals.push(plain("flow", flow));
    totals.push(plain("pending", amount(&view.pending)));
    let states = [
        (view.retry, "retry"),
        (view.blocked, "blocked"),
        (view.deferred, "deferred"),
        (view.scheduled, "scheduled"),
    ];
    let states = states.iter().filter(|(count, _)| count.count > 0);
    let states: Vec<String> = states.map(|(count, state)| format!("{count} {state}")).collect();
    if !states.is_empty() {
        totals.push(plain("waiting", states.join(", ")));
    }
    if view.blocked_keys.count > 0 {
        let keys = format!("{} (sendoff keys ls)", view.blocked_keys);
        totals.push(("keys".to_owned(), Tone::Warning, keys));
    }
    if view.dead.count.count > 0 {
        let reasons = view.dead.reasons.iter();
        let reasons: Vec<String> = reasons
            .map(|(reason, count)| format!("{} {reason}", grouped(*count)))
            .collect();
        let dead = format!("{}: {} (sendoff dead ls)", view.dead.count, reasons.join(", "));
        totals.push(("dead".to_owned(), Tone::Warning, dead));
    }
    totals.push(lanes(view));
    if let Some(jobs) = view.jobs {
        let states = [
            (jobs.pending, "pending"),
            (jobs.running, "running"),
            (jobs.retry, "retry"),
            (jobs.completed, "completed"),
            (jobs.failed, "failed"),
        ];
        let states = states.iter().filter(|(count, _)| *count > 0);
        let states: Vec<String> = states
            .map(|(count, state)| format!("{} {state}", grouped(*count)))
            .collect();
        let tone = if jobs.failed > 0 { Tone::Warning } else { Tone::Dim };
        totals.push(("jobs".to_owned(), tone, states.join(", ")));
    }
    totals
}

fn lanes(view: &StatusView) -> Fact {
    let (total, free) = (view.lanes.total, &view.lanes.free);
    let name = "lanes".to_owned();
    if free.is_empty() {
        return (name, Tone::Dim, format!("{total}, all with a relay"));
    }
    if free.len() as u64 == total {
        return (name, Tone::Warning, format!("{total}, all without a relay"));
    }
    let named: Vec<String> = free.iter().take(NAMED_LANES).map(ToString::to_string).collect();
    let more = if free.len() > NAMED_LANES { ", …" } else { "" };
    let facts = format!("{total}, {} without a relay: {}{more}", free.len(), named.join(", "));
    (name, Tone::Warning, facts)
}

fn amount(backlog: &BacklogView) -> String {
    match backlog.oldest_seconds {
        Some(oldest) if backlog.count.count > 0 => {
            format!("{}, oldest {}", backlog.count, age_in_words(oldest))
        }
        Some(_) | None => "none".to_owned(),
    }
}

fn sink(sink: &SinkView) -> Fact {
    let (mut facts, mut tone) = (Vec::new(), Tone::Good);
    match sink.state {
        SinkStateView::Up => facts.push("up".to_owned()),
        SinkStateView::RampingUp => facts.push("up again, ramping up".to_owned()),
        SinkStateView::Down => {
            tone = Tone::Bad;
            facts.push(format!("down for {}", age_in_words(sink.down_seconds.unwrap_or(0.0))));
            if sink.relays_down < sink.relays {
                facts.push(format!("at {} of {} relays", sink.relays_down, sink.relays));
            }
            if let Some(probe) = sink.next_probe_seconds {
                facts.push(format!("next probe in {}", age_in_words(probe)));
            }
        }
        SinkStateView::Paused => {
            tone = Tone::Warning;
            let by = sink.paused_by.as_deref().unwrap_or_default();
            let paused = age_in_words(sink.paused_seconds.unwrap_or(0.0));
            facts.push(format!("paused by {by} for {paused}"));
        }
        SinkStateView::Unknown => {
            tone = Tone::Warning;
            facts.push("not known to a live relay".to_owned());
        }
    }
    facts.push(format!("out {}", rate_in_words(sink.delivered_rate)));
    if sink.failed_rate > 0.0 {
        facts.push(format!("failures {}", rate_in_words(sink.failed_rate)));
    }
    if sink.in_flight > 0 {
        facts.push(format!("{} in flight", grouped(sink.in_flight)));
    }
    if sink.backlog.count.count > 0 {
        facts.push(format!("backlog {}", amount(&sink.backlog)));
        let states = [
            (sink.deferred, "deferred"),
            (sink.retry, "retry"),
            (sink.blocked, "blocked"),
        ];
        let states = states.iter().filter(|(count, _)| count.count > 0);
        facts.extend(states.map(|(count, state)| format!("{count} {state}")));
    }
    if sink.stale && sink.relays > 0 {
        facts.push("figures are stale".to_owned());
    }
    let mut facts = facts.join(", ");
    if let (Some(error), Some(since)) = (&sink.last_error, sink.last_error_seconds) {
        facts += &format!("; last error {} ago: {error}", age_in_words(since));
    }
    (sink.name.clone(), tone, facts)
}

fn topic(topic: &TopicView) -> Fact {
    let mut facts = amount(&topic.backlog);
    let mut tone = Tone::Plain;
    if let Some(by) = &topic.paused_by {
        tone = Tone::Warning;
        let paused = age_in_words(topic.paused_seconds.unwrap_or(0.0));
        facts = format!("paused by {by} for {paused}, backlog {facts}");
    }
    (topic.topic.clone(), tone, facts)
}

fn relay(relay: &RelayView) -> Fact {
    let beat = age_in_words(relay.beat_seconds);
    if !relay.alive {
        return (relay.name.clone(), Tone::Bad, format!("gone, last beat {beat} ago"));
    }
    let config = relay.config.chars().take(8).collect::<String>();
    let differs = if relay.config_differs { " (differs)" } else { "" };
    let mut facts = vec![
        format!("version {}", relay.version),
        format!("config {config}{differs}"),
        format!("{} lanes", relay.lanes),
    ];
    match &relay.rates {
        Some(rates) => facts.push(format!(
            "in {}, out {}",
            rate_in_words(rates.read),
            rate_in_words(rates.delivered)
        )),
        None => facts.push("no figures yet".to_owned()),
    }
    if let Some(in_flight) = relay.in_flight.filter(|in_flight| *in_flight > 0) {
        facts.push(format!("{} in flight", grouped(in_flight)));
    }
    facts.push(format!("last beat {beat} ago"));
    if relay.stale {
        facts.push(format!(
            "figures are stale: {} old",
            age_in_words(relay.figures_seconds.unwrap_or(0.0))
        ));
    }
    let tone = if relay.stale || relay.config_differs {
        Tone::Warning
    } else {
        Tone::Good
    };
    (relay.name.clone(), tone, facts.join(", "))
}
