//! Sinks: what live relays know about them, and what waits for them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use sendoff::envelope::rfc3339;
use sendoff::store::{Overview, Pausable, Routes, SinkFigures, Status};

use super::build::{Scales, seconds_since};
use super::{BacklogView, STALE_SECONDS, SampledCount, SinkStateView, SinkView};

/// All sinks that a live relay has, that something waits for, or that are paused; sorted by name.
pub(super) fn of(overview: &Overview, scales: &Scales) -> Vec<SinkView> {
    let now = overview.health.now;
    let mut sinks: BTreeMap<String, SinkView> = BTreeMap::new();
    let alive = || overview.relays.iter().filter(|relay| relay.alive);
    for (name, written_at, figures) in alive().flat_map(|relay| &relay.sinks) {
        add_figures(sink(&mut sinks, name), now, *written_at, figures);
    }
    for group in overview.waiting.iter().filter(|group| !group.sink.is_empty()) {
        let count = scales.waiting.of(group.count);
        let view = sink(&mut sinks, &group.sink);
        if group.status != Status::Scheduled {
            view.backlog.add(count, group.oldest.as_secs_f64());
        }
        match group.status {
            Status::Deferred => view.deferred = view.deferred.plus(count),
            Status::Retry => view.retry = view.retry.plus(count),
            Status::Blocked => view.blocked = view.blocked.plus(count),
            _ => {}
        }
    }
    // Ready messages are not routed yet: the routes of the relays tell where they go.
    let routes: Vec<Routes> = alive().map(|relay| Routes::from_text(&relay.routes)).collect();
    for group in &overview.ready {
        let route = routes.iter().map(|routes| routes.sinks_of(&group.topic));
        for name in route.into_iter().find(|sinks| !sinks.is_empty()).unwrap_or_default() {
            let backlog = &mut sink(&mut sinks, name).backlog;
            backlog.add(scales.ready.of(group.count), group.oldest.as_secs_f64());
        }
    }
    for pause in &overview.pauses {
        let Pausable::Sink(name) = &pause.what else { continue };
        let view = sink(&mut sinks, name);
        view.state = SinkStateView::Paused;
        view.paused_by = Some(pause.by.clone());
        view.paused_since = Some(rfc3339(pause.since));
        view.paused_seconds = Some(seconds_since(now, pause.since));
    }
    sinks.into_values().collect()
}

fn sink<'a>(sinks: &'a mut BTreeMap<String, SinkView>, name: &str) -> &'a mut SinkView {
    sinks.entry(name.to_owned()).or_insert_with(|| SinkView {
        name: name.to_owned(),
        state: SinkStateView::Unknown,
        down_since: None,
        down_seconds: None,
        relays: 0,
        relays_down: 0,
        paused_by: None,
        paused_since: None,
        paused_seconds: None,
        delivered_rate: 0.0,
        failed_rate: 0.0,
        delivered: 0,
        failed: 0,
        in_flight: 0,
        backlog: BacklogView::default(),
        deferred: SampledCount::default(),
        retry: SampledCount::default(),
        blocked: SampledCount::default(),
        last_error: None,
        last_error_seconds: None,
        next_probe_seconds: None,
        stale: true,
    })
}

/// Adds what one relay knows. A sink that one of several relays cannot reach is down: its lanes do not move.
fn add_figures(view: &mut SinkView, now: SystemTime, written_at: SystemTime, figures: &SinkFigures) {
    let age = seconds_since(now, written_at);
    view.relays += 1;
    view.stale &= age > STALE_SECONDS;
    view.in_flight += figures.in_flight;
    view.delivered += figures.delivered;
    view.failed += figures.failed;
    view.delivered_rate += figures.delivered_rate;
    view.failed_rate += figures.failed_rate;
    if let Some(down) = figures.down_seconds.map(|down| down + age) {
        view.relays_down += 1;
        view.state = SinkStateView::Down;
        if view.down_seconds.is_none_or(|known| known < down) {
            view.down_seconds = Some(down);
            let since = now.checked_sub(Duration::try_from_secs_f64(down).unwrap_or_default());
            view.down_since = since.map(rfc3339);
        }
        let probe = figures.probe_seconds.map(|probe| (probe - age).max(0.0));
        view.next_probe_seconds = match (view.next_probe_seconds, probe) {
            (Some(known), Some(probe)) => Some(known.min(probe)),
            (known, probe) => known.or(probe),
        };
    } else if view.state != SinkStateView::Down {
        let ramps_up = figures.ramping_up || view.state == SinkStateView::RampingUp;
        view.state = if ramps_up {
            SinkStateView::RampingUp
        } else {
            SinkStateView::Up
        };
    }
    if let (Some(error), Some(since)) = (&figures.last_error, figures.error_seconds) {
        let since = since + age;
        if view.last_error_seconds.is_none_or(|known| since < known) {
            view.last_error = Some(error.clone());
            view.last_error_seconds = Some(since);
        }
    }
}
