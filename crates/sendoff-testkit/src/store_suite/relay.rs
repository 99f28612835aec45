//! The real relay on top: what is committed arrives.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Backlog, Command, Filter, Status};
use sendoff::{Message, Outcome};
use sendoff_relay::{OnFailure, Relay, Settings};
use tokio_util::sync::CancellationToken;

use super::Setup;
use super::registry::{CaseResult, cases};
use super::relays::{Running, arrive, everything, pattern, policy, relay, settings};
use super::scene::{Scene, eventually, numbered, plain};
use crate::recording_hooks::Call;
use crate::{Act, RecordingHooks, ScriptedSink};

cases![
    everything_that_is_committed_arrives_once,
    messages_arrive_while_the_relay_runs,
    lanes_are_handed_over_at_once_on_a_clean_stop,
    two_relays_share_the_work,
    a_message_goes_to_every_sink_of_its_route,
    a_message_that_waits_for_one_sink_is_seen_to_be_with_the_other
        with Setup { keep_delivered: true, ..Setup::PLAIN },
    a_sink_that_is_down_does_not_hold_up_another,
    a_sink_that_panics_loses_nothing,
    a_bad_row_is_a_dead_letter_and_its_neighbours_arrive needs Sql,
    a_message_without_a_route_is_a_dead_letter_until_there_is_one,
    an_expired_message_is_a_dead_letter,
    an_expired_message_that_is_retried_arrives,
    a_scheduled_message_arrives_when_it_is_due,
    a_message_is_tried_as_often_as_it_allows,
    one_run_delivers_what_is_due_and_tells_what_is_left,
    hooks_are_told,
];

fn temporary() -> Act {
    Act::Refuse(Outcome::Temporary("not now".into()))
}

fn permanent() -> Act {
    Act::Refuse(Outcome::Permanent("never".into()))
}

async fn empty(scene: &Scene) -> CaseResult {
    eventually("everything is settled", || async {
        Ok(scene.subject.relay.backlog().await? == Backlog::default())
    })
    .await
}

async fn everything_that_is_committed_arrives_once(scene: Scene) -> CaseResult {
    let mut ids = HashSet::new();
    for n in 0..10 {
        let keyed = (0..50).map(|k| numbered(&format!("k{k}"), n));
        let keyless = (0..50).map(|_| plain("t"));
        ids.extend(
            scene
                .emit(keyed.chain(keyless))
                .await?
                .into_iter()
                .map(sendoff::Emitted::id),
        );
    }
    let sink = Arc::new(ScriptedSink::new());
    let running = Running::start(relay(scene.subject.relay.clone(), &sink));
    arrive(&sink, 1000).await;
    let report = running.stop().await?;
    assert_eq!((report.delivered, report.retried, report.dead), (1000, 0, 0));
    let arrivals = sink.arrivals();
    assert_eq!(arrivals.len(), 1000, "nothing arrives twice without a reason");
    assert_eq!(arrivals.iter().map(|outgoing| outgoing.id).collect::<HashSet<_>>(), ids);
    assert!(sink.is_closed() && sink.overlaps().is_empty());
    assert_eq!(scene.subject.relay.backlog().await?, Backlog::default());
    Ok(())
}

async fn messages_arrive_while_the_relay_runs(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new());
    let running = Running::start(relay(scene.subject.relay.clone(), &sink));
    for n in 0..30 {
        scene.emit([numbered("k", n)]).await?;
        arrive(&sink, n + 1).await;
    }
    running.stop().await?;
    Ok(())
}

async fn lanes_are_handed_over_at_once_on_a_clean_stop(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new());
    let running = Running::start(relay(scene.subject.relay.clone(), &sink));
    scene.emit_key("k", 10).await?;
    arrive(&sink, 10).await;
    running.stop().await?;
    let grants = scene.idle_relay().await?.acquire(usize::MAX).await?;
    assert_eq!(
        grants.len(),
        usize::from(scene.subject.relay.lanes()),
        "its lease had half a minute to go"
    );
    assert!(grants.iter().all(|grant| grant.crashes == 0));
    Ok(())
}

async fn two_relays_share_the_work(scene: Scene) -> CaseResult {
    let sinks = [Arc::new(ScriptedSink::new()), Arc::new(ScriptedSink::new())];
    let mut running = Vec::new();
    for sink in &sinks {
        running.push(Running::start(relay(scene.second().await?.subject.relay, sink)));
    }
    let mut emitted = 0;
    eventually("both have delivered something", || async {
        scene.emit((0..100).map(|n| numbered(&format!("k{n}"), n))).await?;
        Ok(sinks.iter().all(|sink| !sink.arrivals().is_empty()))
    })
    .await?;
    for running in running {
        running.stop().await?;
    }
    let last = Running::start(relay(scene.subject.relay.clone(), &sinks[0]));
    empty(&scene).await?;
    last.stop().await?;
    let mut ids = HashSet::new();
    for outgoing in sinks.iter().flat_map(|sink| sink.arrivals()) {
        emitted += 1;
        assert!(ids.insert(outgoing.id), "it was with both");
    }
    assert_eq!(emitted % 100, 0);
    Ok(())
}

async fn a_message_goes_to_every_sink_of_its_route(scene: Scene) -> CaseResult {
    let (one, other) = (Arc::new(ScriptedSink::new()), Arc::new(ScriptedSink::new()));
    let builder = Relay::builder(scene.subject.relay.clone())
        .sink("one", one.clone())
        .sink("other", other.clone())
        .route(pattern("both"), ["one", "other"])
        .route(pattern("b*"), ["other"])
        .settings(settings());
    let running = Running::start(builder);
    let emitted = scene.emit([plain("both"), plain("before")]).await?;
    arrive(&one, 1).await;
    arrive(&other, 2).await;
    empty(&scene).await?;
    running.stop().await?;
    assert_eq!(one.arrivals()[0].id, emitted[0].id());
    assert_eq!((one.arrivals().len(), other.arrivals().len()), (1, 2));
    Ok(())
}

async fn a_message_that_waits_for_one_sink_is_seen_to_be_with_the_other(scene: Scene) -> CaseResult {
    let id = scene.emit([plain("t")]).await?[0].id();
    let (good, bad) = (
        Arc::new(ScriptedSink::new()),
        Arc::new(ScriptedSink::new().script(|_, _| permanent())),
    );
    let builder = Relay::builder(scene.subject.relay.clone())
        .sink("good", good.clone())
        .sink("bad", bad)
        .route(everything(), ["good", "bad"])
        .settings(settings());
    let running = Running::start(builder);
    eventually("it is a dead letter", || async {
        Ok(scene.count(Status::Dead).await? == 1)
    })
    .await?;
    running.stop().await?;
    assert_eq!(good.arrivals().len(), 1);
    assert_eq!(scene.find_delivery(id, "good").await?.status, Status::Delivered);
    assert_eq!(scene.find_delivery(id, "bad").await?.status, Status::Dead);
    Ok(())
}

async fn a_sink_that_is_down_does_not_hold_up_another(scene: Scene) -> CaseResult {
    let up = Arc::new(ScriptedSink::new());
    let down = Arc::new(ScriptedSink::new().script(|_, _| Act::Refuse(Outcome::SinkDown("it is down".into()))));
    let builder = Relay::builder(scene.subject.relay.clone())
        .sink("up", up.clone())
        .sink("down", down)
        .route(everything(), ["down", "up"])
        .settings(settings());
    let running = Running::start(builder);
    let ids = scene.emit_key("k", 20).await?;
    arrive(&up, 20).await;
    assert_eq!(super::relays::numbers(&up, "k"), (0..20).collect::<Vec<_>>());
    eventually("all of them wait for the other", || async {
        Ok(scene.subject.relay.backlog().await?.ready == 0)
    })
    .await?;
    running.stop().await?;
    for id in ids {
        let stored = scene.find_one(id).await?;
        assert_eq!(
            (stored.sink.as_str(), stored.attempts),
            ("down", 0),
            "a sink that is down costs no attempt"
        );
    }
    Ok(())
}

async fn a_sink_that_panics_loses_nothing(scene: Scene) -> CaseResult {
    let sink = Arc::new(
        ScriptedSink::new().script(|outgoing, copy| match (&*outgoing.payload, copy) {
            (b"3", 1..=3) => Act::Panic,
            _ => Act::Deliver,
        }),
    );
    let running = Running::start(relay(scene.subject.relay.clone(), &sink));
    scene.emit((0..10).map(|n| numbered(&format!("k{n}"), n))).await?;
    arrive(&sink, 10).await;
    empty(&scene).await?;
    running.stop().await?;
    Ok(())
}

async fn a_bad_row_is_a_dead_letter_and_its_neighbours_arrive(scene: Scene) -> CaseResult {
    scene.emit((0..20).map(|n| numbered(&format!("k{}", n % 4), n))).await?;
    let bad = "UPDATE outbox_message SET headers = '[1]' \
               WHERE seq = (SELECT seq FROM (SELECT min(seq) + 9 AS seq FROM outbox_message) AS it)";
    assert_eq!(scene.subject.database.execute(bad).await?, 1);
    let sink = Arc::new(ScriptedSink::new());
    let running = Running::start(relay(scene.subject.relay.clone(), &sink));
    arrive(&sink, 19).await;
    eventually("it is a dead letter", || async {
        Ok(scene.count(Status::Dead).await? == 1)
    })
    .await?;
    running.stop().await?;
    let listing = scene.subject.operate.list(&Filter::default(), 10).await?;
    assert_eq!(listing.messages[0].detail.as_deref(), Some("unreadable"));
    assert_eq!(sink.arrivals().len(), 19);
    Ok(())
}

async fn a_message_without_a_route_is_a_dead_letter_until_there_is_one(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new());
    let builder = |route: &str| {
        Relay::builder(scene.subject.relay.clone())
            .sink("sink", sink.clone())
            .route(pattern(route), ["sink"])
            .settings(settings())
    };
    let running = Running::start(builder("other.*"));
    let id = scene.emit([plain("topic")]).await?[0].id();
    eventually("it is a dead letter", || async {
        Ok(scene.count(Status::Dead).await? == 1)
    })
    .await?;
    running.stop().await?;
    let stored = scene.find_one(id).await?;
    assert_eq!(
        (stored.detail.as_deref(), stored.sink.as_str()),
        (Some("unroutable"), "")
    );
    let running = Running::start(builder("*"));
    assert_eq!(
        scene
            .subject
            .operate
            .retry_dead(&Filter::default(), None, usize::MAX, &mut Command::by("suite"))
            .await?,
        1
    );
    arrive(&sink, 1).await;
    empty(&scene).await?;
    running.stop().await?;
    Ok(())
}

async fn an_expired_message_is_a_dead_letter(scene: Scene) -> CaseResult {
    let past = scene.now().await? - Duration::from_secs(1);
    let emitted = scene.emit([plain("late").expires_at(past), plain("in time")]).await?;
    let sink = Arc::new(ScriptedSink::new());
    let running = Running::start(relay(scene.subject.relay.clone(), &sink));
    arrive(&sink, 1).await;
    eventually("it is a dead letter", || async {
        Ok(scene.count(Status::Dead).await? == 1)
    })
    .await?;
    running.stop().await?;
    assert_eq!(
        scene.find_one(emitted[0].id()).await?.detail.as_deref(),
        Some("expired")
    );
    assert_eq!(sink.publications().len(), 1, "no sink sees it");
    Ok(())
}

async fn an_expired_message_that_is_retried_arrives(scene: Scene) -> CaseResult {
    let past = scene.now().await? - Duration::from_secs(1);
    let id = scene.emit([plain("late").expires_at(past)]).await?[0].id();
    let sink = Arc::new(ScriptedSink::new());
    let running = Running::start(relay(scene.subject.relay.clone(), &sink));
    eventually("it is a dead letter", || async {
        Ok(scene.count(Status::Dead).await? == 1)
    })
    .await?;
    let (operate, all) = (&scene.subject.operate, Filter::default());
    let retried = operate
        .retry_dead(&all, None, usize::MAX, &mut Command::by("suite"))
        .await?;
    assert_eq!(retried, 1);
    arrive(&sink, 1).await;
    running.stop().await?;
    assert_eq!(sink.arrivals()[0].id, id);
    assert!(operate.find(id).await?.is_empty());
    Ok(())
}

async fn a_scheduled_message_arrives_when_it_is_due(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new());
    let running = Running::start(relay(scene.subject.relay.clone(), &sink));
    let (began, delay) = (tokio::time::Instant::now(), Duration::from_millis(300));
    scene
        .emit([plain("t").delay(delay), plain("never").delay(Duration::from_secs(3600))])
        .await?;
    arrive(&sink, 1).await;
    assert!(began.elapsed() + super::scene::TICK >= delay);
    running.stop().await?;
    assert_eq!(sink.publications().len(), 1);
    Ok(())
}

async fn a_message_is_tried_as_often_as_it_allows(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new().script(|_, _| temporary()));
    let running = Running::start(relay(scene.subject.relay.clone(), &sink));
    let emitted = scene.emit([plain("own").max_attempts(2), plain("topic's")]).await?;
    eventually("both are dead letters", || async {
        Ok(scene.count(Status::Dead).await? == 2)
    })
    .await?;
    running.stop().await?;
    for (emitted, attempts) in emitted.into_iter().zip([2, 5]) {
        let stored = scene.find_one(emitted.id()).await?;
        assert_eq!(
            (stored.attempts, stored.detail.as_deref()),
            (attempts, Some("exhausted"))
        );
        let copies = sink
            .publications()
            .into_iter()
            .filter(|p| p.outgoing.id == emitted.id())
            .count();
        assert_eq!(copies, usize::try_from(attempts).expect("a small number"));
    }
    Ok(())
}

async fn one_run_delivers_what_is_due_and_tells_what_is_left(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new().script(|outgoing, _| match outgoing.topic.as_str() {
        "never" => permanent(),
        _ => Act::Deliver,
    }));
    scene
        .emit((0..300).map(|n| numbered(&format!("k{}", n % 7), n)))
        .await?;
    scene
        .emit([plain("never"), plain("later").delay(Duration::from_secs(3600))])
        .await?;
    let once = relay(scene.subject.relay.clone(), &sink).settings(Settings {
        batch: 50,
        max_in_flight: 100,
        ..settings()
    });
    let report = once.build()?.run_once(CancellationToken::new()).await?;
    assert_eq!((report.run.delivered, report.run.retried, report.run.dead), (300, 0, 1));
    assert_eq!(
        report.remaining,
        Backlog {
            waiting: 1,
            dead: 1,
            ..Backlog::default()
        }
    );
    assert_eq!(sink.arrivals().len(), 300);
    Ok(())
}

async fn hooks_are_told(scene: Scene) -> CaseResult {
    let sink = Arc::new(
        ScriptedSink::new().script(|outgoing, copy| match (outgoing.topic.as_str(), copy) {
            ("never", _) => permanent(),
            ("again", 1) => temporary(),
            _ => Act::Deliver,
        }),
    );
    let hooks = Arc::new(RecordingHooks::new());
    let builder = relay(scene.subject.relay.clone(), &sink).default_policy(policy(OnFailure::Skip));
    let running = Running::start(builder.hooks(hooks.clone()));
    let messages = ["once", "again", "never"].map(plain);
    let [once, again, never] = messages.clone().map(|message: Message| message.id());
    scene.emit(messages).await?;
    arrive(&sink, 2).await;
    eventually("the third is a dead letter", || async {
        Ok(scene.count(Status::Dead).await? == 1)
    })
    .await?;
    running.stop().await?;
    let calls = |id| {
        hooks
            .calls()
            .into_iter()
            .filter(|call| call.id() == Some(id))
            .collect::<Vec<_>>()
    };
    assert!(matches!(calls(once)[..], [Call::Sent { .. }]), "{:?}", calls(once));
    assert!(
        matches!(calls(again)[..], [Call::Failed { attempts: 1, .. }, Call::Sent { .. }]),
        "{:?}",
        calls(again)
    );
    assert!(
        matches!(calls(never)[..], [Call::DeadLettered { .. }]),
        "{:?}",
        calls(never)
    );
    let batches = hooks.calls().into_iter().filter(|call| call.id().is_none());
    assert_eq!(
        batches.collect::<Vec<_>>(),
        [Call::DeadLetteredBatch { ids: vec![never] }]
    );
    Ok(())
}
